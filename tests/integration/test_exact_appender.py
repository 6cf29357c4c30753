"""Exact appends to a real broker: writers that are killed, brokers that are killed or stand still."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from rmqtools import Admin, Client, ClientConfig, MessageQueue, QueueRange
from rmqtools.cluster import LocalCluster
from rmqtools.model.append_mark import APPEND_MARK, parse_mark
from rmqtools.protocol.headers.group import UnlockBatchMqRequestHeader
from rmqtools.protocol.wire.bodies import format_unlock
from rmqtools.protocol.wire.command import request
from tests.support.cluster_scene import pid_of
from tests.support.patience import PATIENCE, PATIENT_REQUEST
from tests.support.resting import RestingCluster

pytestmark = pytest.mark.broker

BROKER = "broker-a"


class Writers:
    """Processes that write to one queue, one after the other."""

    def __init__(self, cluster: LocalCluster, topic: str, *, end: int, settle_seconds: float) -> None:
        self._cluster = cluster
        self.queue = MessageQueue(topic, BROKER, 0)
        self._end = end
        self._settle_seconds = settle_seconds

    def start(self) -> "subprocess.Popen[str]":
        program = [sys.executable, "-m", "tests.integration.exact_writer", self._cluster.name_server]
        arguments = [self.queue.topic, BROKER, str(self._end), str(self._settle_seconds)]
        return subprocess.Popen([*program, *arguments], stdout=subprocess.PIPE, text=True)

    def kill(self, process: "subprocess.Popen[str]") -> None:
        """End a writer as a power cut would. Its lock ends at once: brokers keep it for a minute."""
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)

    def run_killed(self, lines: int) -> None:
        """Run a writer until it has printed so many lines, and kill it; one that ends is done."""
        process = self.start()
        assert process.stdout is not None
        lock_id = process.stdout.readline().strip()
        for _ in range(lines):
            process.stdout.readline()
        self.kill(process)
        process.stdout.close()
        self.unlock(lock_id)

    def unlock(self, lock_id: str) -> None:
        """Release the lock of a dead writer: brokers keep it for a minute."""
        body = format_unlock("RMQTOOLS_EXACT-killed", lock_id, [self.queue])
        config = ClientConfig(name_server=self._cluster.name_server, request_timeout=PATIENT_REQUEST)
        with Client(config) as client:
            core = client.asynchronous._client
            addr = self._cluster.broker_addrs[BROKER]
            client.run(core.remoting.invoke_ok(addr, request(UnlockBatchMqRequestHeader(), body)))

    def finish(self) -> None:
        process = self.start()
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0

    def positions(self) -> list[int]:
        """The positions in the queue, in its order."""
        config = ClientConfig(name_server=self._cluster.name_server, request_timeout=PATIENT_REQUEST)
        with Client(config) as client, Admin(client) as admin:
            admin.await_readable({self.queue: self._end}, timeout=PATIENCE)
            found = client.read_messages(QueueRange(self.queue, 0, admin.max_offset(self.queue)))
            marks = [parse_mark(message.properties[APPEND_MARK]) for part in found for message in part]
        return [mark.position for mark in marks if mark is not None]


def test_killed_writers_leave_each_message_once_and_in_order(local_cluster, make_topic):
    writers = Writers(local_cluster, make_topic(queues=1), end=4000, settle_seconds=0.5)

    for lines in (1, 3):
        writers.run_killed(lines)
    writers.finish()

    assert writers.positions() == [*range(4000)]


@pytest.fixture
def own_cluster() -> Iterator[LocalCluster]:
    with RestingCluster(brokers=1) as cluster:
        with Admin(ClientConfig(name_server=cluster.name_server, request_timeout=PATIENT_REQUEST)) as admin:
            admin.create_topic("target", read_queue_nums=1, write_queue_nums=1)
        yield cluster


@pytest.mark.slow
def test_twenty_killed_writers_leave_each_message_once_and_in_order(own_cluster):
    chance = random.Random(49)
    writers = Writers(own_cluster, "target", end=60_000, settle_seconds=1.0)

    for _ in range(20):
        writers.run_killed(chance.randrange(1, 15))
    writers.finish()

    assert writers.positions() == [*range(60_000)]


@pytest.mark.slow
def test_a_frozen_broker_with_the_writer_killed_meanwhile_stores_each_message_once(own_cluster):
    chance = random.Random(49)
    writers = Writers(own_cluster, "target", end=30_000, settle_seconds=4.0)
    pid = pid_of(own_cluster, BROKER)

    for _ in range(5):
        process = writers.start()
        assert process.stdout is not None
        lock_id = process.stdout.readline().strip()
        for _ in range(chance.randrange(1, 10)):
            process.stdout.readline()
        os.kill(pid, signal.SIGSTOP)
        threading.Event().wait(chance.uniform(0.0, 0.5))  # requests come into its buffers
        writers.kill(process)
        process.stdout.close()
        os.kill(pid, signal.SIGCONT)
        writers.unlock(lock_id)
    writers.finish()

    assert writers.positions() == [*range(30_000)]


@pytest.mark.slow
def test_a_killed_broker_stores_each_message_once(own_cluster):
    chance = random.Random(49)
    writers = Writers(own_cluster, "target", end=60_000, settle_seconds=10.0)
    process = writers.start()
    assert process.stdout is not None

    for _ in range(5):
        for _ in range(chance.randrange(5, 30)):
            process.stdout.readline()
        own_cluster.kill_server(BROKER)
        own_cluster.start_server(BROKER)
    process.communicate(timeout=PATIENCE)

    assert process.returncode == 0
    assert writers.positions() == [*range(60_000)]


def test_a_real_broker_names_the_settings_that_are_refused(local_cluster, admin):
    config = admin.fetch_broker_config(local_cluster.broker_addrs[BROKER])

    assert config["enableBuildConsumeQueueConcurrently"] == "false"
    assert config["storeType"] == "default"
    assert "bootTimestamp" in admin.fetch_broker_runtime_info(local_cluster.broker_addrs[BROKER])
