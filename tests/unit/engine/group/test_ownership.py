"""What a member needs of its servers is looked at before it joins its group."""

import pytest

from rmqtools import (
    Client,
    ClientConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    QueueRange,
)
from rmqtools.allocate import AllocateByPins
from rmqtools.errors import UnsupportedError
from rmqtools.model.codes import RequestCode
from rmqtools.model.queue import MessageQueue
from rmqtools.testing import FakeCluster
from tests.support.behind_proxy import show_as_proxy, show_version


def push(cluster: FakeCluster, *, strategy=None, sql=None, **settings) -> PushConsumer:
    config = PushConsumerConfig(name_server=cluster.name_server, group="g", **settings)
    consumer = PushConsumer(config, strategy=strategy) if strategy else PushConsumer(config)
    consumer.subscribe("T", lambda messages, context: None, sql=sql)
    return consumer


def refused(consumer, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        consumer.start()
    consumer.close()


def test_pins_through_a_proxy_are_refused_at_the_start():
    with FakeCluster() as cluster:
        show_as_proxy(cluster)

        refused(
            push(cluster, strategy=AllocateByPins(when_absent="nobody")),
            "pins of a group.*proxy.*AllocatePinnedByIp",
        )
        assert cluster.requests(code=RequestCode.HEART_BEAT) == []


def test_queues_shared_out_by_brokers_are_refused_at_the_start_through_a_proxy():
    with FakeCluster() as cluster:
        show_as_proxy(cluster)

        refused(push(cluster, client_rebalance=False), "client_rebalance=False.*proxy.*client_rebalance=True")


def test_queues_shared_out_by_brokers_are_refused_at_the_start_by_brokers_that_cannot():
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        show_version(cluster, "4.9.7")

        refused(
            push(cluster, client_rebalance=False),
            "since 5.0.0, and broker-a.* 4.9.7; set client_rebalance=True",
        )


@pytest.mark.process
def test_a_broker_that_is_away_does_not_keep_a_member_from_starting(caplog):
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        cluster.fault(code=RequestCode.GET_BROKER_RUNTIME_INFO, answer=None)

        with push(cluster, client_rebalance=False, request_timeout=0.1):
            assert "broker_version_unknown" in caplog.text


def test_a_condition_through_a_proxy_is_refused_at_the_start():
    with FakeCluster() as cluster:
        show_as_proxy(cluster)

        refused(push(cluster, sql="a = 1"), "conditions.*proxy.*use tags")


def test_a_condition_through_a_proxy_is_refused_when_a_running_member_wants_it():
    with FakeCluster() as cluster:
        show_as_proxy(cluster)
        consumer = PullConsumer(PullConsumerConfig(name_server=cluster.name_server, group="g"))
        consumer.subscribe("T")
        with consumer, pytest.raises(UnsupportedError, match="conditions"):
            consumer.subscribe("U", sql="a = 1")


def test_a_range_is_not_read_by_a_condition_through_a_proxy():
    with FakeCluster() as cluster, Client(ClientConfig(name_server=cluster.name_server)) as client:
        show_as_proxy(cluster)
        whole = QueueRange(MessageQueue("T", "broker-a", 0), 0, 1)
        with pytest.raises(UnsupportedError, match="conditions"):
            list(client.read_messages(whole, sql="a = 1"))
