"""The blocking faces of exact appends, decisions and mirrors."""

from collections.abc import Iterator

import pytest

from rmqtools import (
    ClientConfig,
    DecisionLog,
    ExactAppender,
    Message,
    MessageQueue,
    Mirror,
    MirrorConfig,
    Producer,
    ProducerConfig,
)
from rmqtools.testing import FakeCluster

QUEUE = MessageQueue("target", "broker-a", 0)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        for topic in ("target", "copy"):
            cluster.create_topic(topic, queues=1)
        yield cluster


def test_a_blocking_appender_goes_on_where_it_was(cluster):
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        with ExactAppender(producer, QUEUE, writer="w", settle_seconds=0) as appender:
            appender.append([Message("target", b"1")], [4])
        with ExactAppender(producer, QUEUE, writer="w", settle_seconds=0) as appender:
            assert appender.last_position == appender.resume() == 4


def test_blocking_decisions_are_those_that_were_said_first(cluster):
    with (
        Producer(ProducerConfig(name_server=cluster.name_server)) as producer,
        DecisionLog(producer, "target") as one,
        DecisionLog(producer, "target") as other,
    ):
        assert one.decide("key", b"yes").is_ours
        assert other.decide("key", b"no").record == b"yes"


def test_a_blocking_mirror_copies(cluster):
    cluster.store("target", b"1", b"2", queue=QUEUE)
    config = MirrorConfig(
        source=ClientConfig(name_server=cluster.name_server),
        target=ProducerConfig(name_server=cluster.name_server),
        topics={"target": "copy"},
        settle_seconds=0,
    )
    with Mirror(config) as mirror:
        (done,) = mirror.run()

        assert (done.copied, mirror.progress()) == (2, [done])
    assert [message.body for message in cluster.messages("copy")] == [b"1", b"2"]
