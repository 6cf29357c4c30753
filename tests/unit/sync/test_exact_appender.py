"""The blocking decisions of several writers; blocking appends and mirrors are in ``tests/behaviour``."""

from rmqtools import DecisionLog, Producer, ProducerConfig
from rmqtools.testing import FakeCluster


def test_blocking_decisions_are_those_that_were_said_first():
    with FakeCluster() as cluster:
        cluster.create_topic("target", queues=1)
        with (
            Producer(ProducerConfig(name_server=cluster.name_server)) as producer,
            DecisionLog(producer, "target") as one,
            DecisionLog(producer, "target") as other,
        ):
            assert one.decide("key", b"yes").is_ours
            assert other.decide("key", b"no").record == b"yes"
