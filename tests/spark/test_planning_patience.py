"""The driver's look-ups wait for brokers that do not answer for a while."""

import os
import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rmqtools import Admin, ClientConfig, MessageQueue, Producer, ProducerConfig
from rmqtools.errors import RemotingTimeoutError
from tests.spark.streams import fill
from tests.support.cluster_scene import pid_of

pytestmark = pytest.mark.default_timeouts


@contextmanager
def paused(cluster, name: str, *, seconds: float) -> Iterator[None]:
    """A broker that does not run for a while; it runs again at the end in any case."""
    pid = pid_of(cluster, name)
    os.kill(pid, signal.SIGSTOP)
    going_on = threading.Timer(seconds, os.kill, [pid, signal.SIGCONT])
    going_on.start()
    try:
        yield
    finally:
        going_on.join()


@pytest.fixture
def filled(own_cluster):
    topic, where = f"filled-{uuid.uuid4().hex[:8]}", {"name_server": own_cluster.name_server}
    with Admin(ClientConfig(**where)) as admin, Producer(ProducerConfig(**where, group="tests")) as producer:
        admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
        fill(producer, admin, dict.fromkeys(admin.fetch_subscribe_queues(topic), 3))
    return topic


def test_a_batch_outlives_a_broker_paused_for_five_seconds_and_logs_one_line(
    filled, read_rows, own_cluster, caplog
):
    with paused(own_cluster, "broker-b", seconds=5):
        rows = read_rows(nameServer=own_cluster.name_server, topic=filled)

    assert len(rows) == 12
    assert [message for message in caplog.messages if message.startswith("planning_waits")] == [
        message for message in caplog.messages if "broker broker-b" in message
    ]
    assert caplog.text.count("planning_waits") == 1


@pytest.mark.slow  # planning's unit tests have the option
def test_the_option_says_how_long_a_batch_waits(filled, read_rows, own_cluster):
    with paused(own_cluster, "broker-b", seconds=5), pytest.raises(RemotingTimeoutError):
        read_rows(nameServer=own_cluster.name_server, topic=filled, planningTimeout="1s")


@pytest.mark.slow
def test_the_start_of_a_stream_outlives_a_broker_paused_for_five_seconds(filled, stream, own_cluster):
    query = stream(nameServer=own_cluster.name_server, topic=filled, startingOffsets="earliest")

    with paused(own_cluster, "broker-b", seconds=12):  # Spark needs some seconds until it asks
        query.run()

    assert sum(query.places().values()) == 12
    assert MessageQueue(filled, "broker-b", 1) in {MessageQueue(*place[:3]) for place in query.places()}
