"""What the first poll of a member hands out counts as consumed, as what later ones do."""

import pytest

from rmqtools import ConsumeFromWhere, MessageQueue, PullConsumer, PullConsumerConfig
from rmqtools.testing import FakeCluster

QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        cluster.create_topic("orders", queues=1)
        cluster.store("orders", b"1", b"2", b"3")
        yield cluster


@pytest.fixture
def consumer(cluster):
    config = PullConsumerConfig(
        name_server=cluster.name_server, group="g", consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    return PullConsumer(config)


def test_closing_after_one_poll_commits_what_it_returned(cluster, consumer):
    with consumer:
        consumer.subscribe("orders")
        assert len(consumer.poll(10, max_messages=2)) == 2

    assert cluster.committed("g", QUEUE) == 2


def test_a_commit_after_one_poll_commits_what_it_returned(cluster, consumer):
    with consumer:
        consumer.subscribe("orders")
        consumer.poll(10, max_messages=2)
        consumer.commit()
        assert cluster.committed("g", QUEUE) == 2


def test_closing_after_one_iteration_commits_what_it_returned(cluster, consumer):
    with consumer:
        consumer.subscribe("orders")
        for message in consumer:
            if message.body == b"2":
                break

    assert cluster.committed("g", QUEUE) == 2
