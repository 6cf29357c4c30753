"""Draining topics of a fake cluster."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmqtools import Admin, Client, ClientConfig, MessageQueue
from rmqtools.errors import TopicNotFoundError
from rmqtools.model.codes import RequestCode
from rmqtools.testing import Drain, FakeCluster, Reaction
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(("broker-a", "broker-b")) as cluster:
        cluster.create_topic("orders", queues=2)
        yield cluster


@pytest.fixture
def drain(cluster: FakeCluster) -> Iterator[Drain]:
    with Client(ClientConfig(name_server=cluster.name_server)) as client, Admin(client) as admin:
        yield Drain(client, admin)


def test_messages_come_by_broker_queue_and_offset_and_only_once(cluster, drain) -> None:
    for broker, queue_id in (("broker-b", 1), ("broker-a", 1), ("broker-a", 0)):
        queue = MessageQueue("orders", broker, queue_id)
        cluster.store("orders", b"%b%d.0" % (broker.encode(), queue_id), b"second", queue=queue)

    first = drain("orders")
    cluster.store("orders", b"later")

    assert [m.body for m in first[::2]] == [b"broker-a0.0", b"broker-a1.0", b"broker-b1.0"]
    assert len(first) == 6
    assert [m.body for m in drain("orders")] == [b"later"]
    assert drain("orders") == []


def test_a_queue_that_has_lost_messages_is_read_from_its_first(cluster, drain) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    cluster.store("orders", b"0", b"1", queue=queue)
    cluster.begin_at(queue, 1)

    assert [m.body for m in drain("orders")] == [b"1"]


def test_a_topic_that_appears_later_is_waited_for(cluster, drain) -> None:
    def fail() -> None:
        cluster.create_topic("%DLQ%g", queues=1, broker_names=["broker-a"])
        cluster.store("%DLQ%g", b"dead")

    asked = cluster.fault(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="%DLQ%g", times=None)
    with ThreadPoolExecutor(1) as pool:
        drained = pool.submit(drain, "%DLQ%g", 1, timeout=PATIENCE)
        wait_until(asked.fired)
        fail()

        assert [message.body for message in drained.result()] == [b"dead"]


@pytest.mark.parametrize(
    "wanted", [pytest.param({}, id="now"), pytest.param({"count": 1, "timeout": 0.0}, id="in-its-time")]
)
def test_a_topic_that_never_appears_is_an_error_that_names_it(drain, wanted) -> None:
    with pytest.raises(TopicNotFoundError, match="nobody"):
        drain("nobody", **wanted)


def test_messages_that_do_not_come_in_time_fail_the_test_with_those_that_came(cluster, drain) -> None:
    cluster.store("orders", b"only")

    with pytest.raises(AssertionError, match=r"'orders': 1 of 2 messages after 0\.05 s: \[b'only'\]"):
        drain("orders", 2, timeout=0.05)
    assert [message.body for message in drain("orders")] == [b"only"]


def test_a_message_that_comes_during_the_only_look_is_returned(cluster, drain) -> None:
    def store_behind(_request) -> Reaction:
        cluster.store("orders", b"late")  # in the first queue, which has been read
        return Reaction.PASS

    cluster.fault(code=RequestCode.GET_MAX_OFFSET, broker="broker-b", queue_id=1, answer=store_behind)

    assert [message.body for message in drain("orders", 1, timeout=0.0)] == [b"late"]
