"""Transactions through a proxy, which forgets every decision that no broker has asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rmqtools import Message, ProducerConfig, TransactionProducer
from rmqtools.testing import FakeCluster, RequestCode
from tests.support.behind_proxy import show_as_proxy
from tests.support.cluster_scene import wait_until
from tests.support.transactions import COMMIT, ROLLBACK, Listener

END = RequestCode.END_TRANSACTION


@contextmanager
def producing(listener: Listener) -> Iterator[tuple[FakeCluster, TransactionProducer]]:
    """A started producer whose cluster is behind a proxy."""
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        show_as_proxy(cluster)
        with TransactionProducer(
            ProducerConfig(name_server=cluster.name_server, group="g"), listener
        ) as producer:
            yield cluster, producer


def ends(cluster: FakeCluster) -> list[tuple[str | None, str | None]]:
    fields = [request.ext_fields for request in cluster.requests(code=END)]
    return [(each["commitOrRollback"], each["fromTransactionCheck"]) for each in fields]


@pytest.mark.parametrize(
    ("state", "bits"), [pytest.param(COMMIT, "8", id="commit"), pytest.param(ROLLBACK, "12", id="rollback")]
)
def test_a_decision_is_given_when_the_broker_asks_and_the_listener_is_not_asked_again(state, bits):
    listener = Listener(lambda message, arg: state)
    with producing(listener) as (cluster, producer):
        result = producer.send_message_in_transaction(Message("T", b"x"))
        before = ends(cluster)
        cluster.check_transactions()
        wait_until(lambda: ends(cluster))

    assert before == []
    assert "a proxy takes no decision before a broker asks" in str(result.end_transaction_error)
    assert ends(cluster) == [(bits, "true")]
    assert listener.checked == []


def test_the_proxy_knows_the_group_before_the_half_message_comes():
    with producing(Listener(lambda message, arg: COMMIT)) as (cluster, producer):
        producer.send_message_in_transaction(Message("T", b"x"))

    codes = [request.code for request in cluster.requests()]
    assert codes.index(RequestCode.HEART_BEAT) < codes.index(RequestCode.SEND_MESSAGE_V2)


def test_decisions_that_no_broker_asked_for_are_told_at_the_close(caplog):
    with producing(Listener(lambda message, arg: COMMIT)) as (_, producer):
        producer.send_message_in_transaction(Message("T", b"x"))

    assert "transaction_decisions_not_asked_for" in caplog.text
