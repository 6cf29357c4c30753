"""Hidden messages of the fake cluster whose queue changes; how it answers pops is in ``tests/behaviour``."""

from collections.abc import Iterator

import pytest

from rmqtools import Admin, ClientConfig, MessageQueue, SimpleConsumer, SimpleConsumerConfig
from rmqtools.model.message import MessageExt
from rmqtools.testing import FakeCluster
from tests.support.listening import FIRST

Q0 = MessageQueue("T", "broker-a", 0)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.create_topic("T", queues=1)
        yield cluster


@pytest.fixture
def consumer(cluster: FakeCluster) -> Iterator[SimpleConsumer]:
    config = SimpleConsumerConfig(name_server=cluster.name_server, group="g", consume_from=FIRST, wait=1.0)
    with SimpleConsumer(config) as consumer:
        consumer.subscribe("T")
        yield consumer


def bodies(messages: list[MessageExt]) -> list[bytes]:
    return [message.body for message in messages]


def test_a_deleted_group_begins_anew(cluster, consumer) -> None:
    cluster.store("T", b"0", b"1")
    consumer.ack(consumer.receive())
    cluster.commit("g", Q0, None)

    assert bodies(consumer.receive()) == [b"0", b"1"]


def test_an_acknowledgement_of_before_a_reset_does_not_move_the_group(cluster, consumer) -> None:
    cluster.store("T", b"0", b"1")
    before = consumer.receive()
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        admin.reset_queue_offset("g", Q0, 0)
    again = consumer.receive(max_messages=1)
    consumer.ack(before)

    assert (bodies(again), cluster.committed("g", Q0)) == ([b"0"], 0)
    assert bodies(consumer.receive()) == [b"1"]


def test_messages_that_their_queue_has_lost_do_not_come_again_and_new_ones_come(cluster, consumer) -> None:
    cluster.store("T", b"0", b"1")
    consumer.receive(invisible_duration=10.0)
    cluster.end_at(Q0, 0)
    cluster.store("T", b"new")
    cluster.advance(10.0)

    assert bodies(consumer.receive()) == [b"new"]


def test_a_new_topic_of_a_deleted_ones_name_is_received_from_its_first(cluster, consumer) -> None:
    cluster.store("T", b"0", b"1")
    consumer.receive()
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        admin.delete_topic("T")
    cluster.create_topic("T", queues=1)
    cluster.store("T", b"new")

    assert bodies(consumer.receive()) == [b"new"]
