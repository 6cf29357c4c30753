"""The driver's look-ups wait for brokers that do not answer for a while."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rmqtools import MessageQueue
from rmqtools.cluster.state import load_state
from rmqtools.errors import RemotingTimeoutError
from tests.spark.streams import fill

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.default_timeouts]


@contextmanager
def paused(cluster, name: str, *, seconds: float) -> Iterator[None]:
    """A broker that does not run for a while; it runs again at the end in any case."""
    state = load_state(cluster.directory)
    assert state is not None
    pid = next(server.pid for server in state.servers if server.name == name)
    os.kill(pid, signal.SIGSTOP)
    going_on = threading.Timer(seconds, os.kill, [pid, signal.SIGCONT])
    going_on.start()
    try:
        yield
    finally:
        going_on.join()


@pytest.fixture
def filled(make_topic, producer, admin):
    topic = make_topic(queues=2)
    fill(producer, admin, dict.fromkeys(admin.fetch_subscribe_queues(topic), 3))
    return topic


def test_a_batch_outlives_a_broker_paused_for_five_seconds_and_logs_one_line(
    filled, read_rows, local_cluster, caplog
):
    with paused(local_cluster, "broker-b", seconds=5):
        rows = read_rows(topic=filled)

    assert len(rows) == 12
    assert [message for message in caplog.messages if message.startswith("planning_waits")] == [
        message for message in caplog.messages if "broker broker-b" in message
    ]
    assert caplog.text.count("planning_waits") == 1


@pytest.mark.slow  # planning's unit tests have the option
def test_the_option_says_how_long_a_batch_waits(filled, read_rows, local_cluster):
    with paused(local_cluster, "broker-b", seconds=5), pytest.raises(RemotingTimeoutError):
        read_rows(topic=filled, planningTimeout="1s")


@pytest.mark.slow
def test_the_start_of_a_stream_outlives_a_broker_paused_for_five_seconds(filled, stream, local_cluster):
    query = stream(topic=filled, startingOffsets="earliest")

    with paused(local_cluster, "broker-b", seconds=12):  # Spark needs some seconds until it asks
        query.run()

    assert sum(query.places().values()) == 12
    assert MessageQueue(filled, "broker-b", 1) in {MessageQueue(*place[:3]) for place in query.places()}
