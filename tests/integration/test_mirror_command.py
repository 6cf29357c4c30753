"""``rmqtools mirror`` between topics of real brokers: mirrors that are killed, brokers that are killed."""

import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest

from rmqtools import Admin, Client, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from rmqtools.model.message import MessageExt
from tests.support.cluster_scene import PROGRAM, pid_of
from tests.support.patience import PATIENCE
from tests.support.reading import read_queues
from tests.support.resting import RestingCluster

pytestmark = pytest.mark.broker

LOCK_SECONDS = "2000"  # ms; a broker keeps a dead mirror's lock for a minute by default


def run(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*PROGRAM, "mirror", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process: "subprocess.Popen[bytes]") -> None:
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors.decode()


def kill_mirror(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)


def fill(name_server: str, topic: str, count: int) -> None:
    with Producer(ProducerConfig(name_server=name_server)) as producer:
        for first in range(0, count, 10_000):
            numbers = range(first, min(count, first + 10_000))
            producer.send_many([Message(topic, b"%d" % n, keys=f"k{n % 1000}") for n in numbers])


def by_queue(name_server: str, topic: str) -> dict[tuple[str, int], list[MessageExt]]:
    with Client(ClientConfig(name_server=name_server)) as client, Admin(client) as admin:
        found = read_queues(client, admin, topic)
    return {(queue.broker_name, queue.queue_id): messages for queue, messages in found.items()}


def assert_equal(source: tuple[str, str], target: tuple[str, str]) -> None:
    """Each message once, in the order of each queue."""
    sent, copied = by_queue(*source), by_queue(*target)
    assert sent.keys() == copied.keys()
    for place, messages in sent.items():
        assert [message.body for message in copied[place]] == [message.body for message in messages]


def test_a_mirror_that_was_interrupted_goes_on_where_it_was(local_cluster, make_topic):
    source, target = make_topic(queues=2), make_topic(queues=2)
    fill(local_cluster.name_server, source, 3000)
    arguments = ("run", f"{source}={target}", "-n", local_cluster.name_server, "--settle", "0.5")
    first = run(*arguments, "--rate", "1000")
    with Admin(ClientConfig(name_server=local_cluster.name_server)) as admin:
        while not sum(
            admin.max_offset(queue) for queue in admin.fetch_subscribe_queues(target)
        ):  # until it has begun
            threading.Event().wait(0.1)
    first.send_signal(signal.SIGTERM)  # it releases its locks
    first.communicate(timeout=PATIENCE)
    finish(run(*arguments))

    assert first.returncode == 143
    assert_equal((local_cluster.name_server, source), (local_cluster.name_server, target))


@pytest.fixture
def two_clusters(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    """Two clusters of two brokers, whose brokers keep a dead writer's lock for two seconds."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Drocketmq.broker.rebalance.lockMaxLiveTime={LOCK_SECONDS}")
    with RestingCluster(brokers=2) as source, RestingCluster(brokers=2) as target:
        for cluster in (source, target):
            with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
                admin.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
        yield source, target


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_kills_of_mirrors_and_brokers_leave_each_message_once_and_in_order(two_clusters):
    source, target = two_clusters
    chance, count = random.Random(49), 60_000
    fill(source.name_server, "orders", count)
    arguments = ("run", "orders", "-n", source.name_server, "--to", target.name_server)
    names = ("--source-name", "east", "--target-name", "west", "--settle", "4")
    pause = threading.Event().wait

    def copied() -> int:
        with Admin(ClientConfig(name_server=target.name_server)) as admin:
            queues = admin.fetch_subscribe_queues("orders")
            return sum(admin.max_offset(queue) for queue in queues)

    for number in range(12):
        process = run(*arguments, *names, "--rate", "4000")
        before = copied()
        while process.poll() is None and copied() == before:
            pause(0.2)
        pause(chance.uniform(0.0, 1.0))
        name = chance.choice(["broker-a", "broker-b"])
        if number % 3 == 1:  # the broker stands still, and the mirror dies meanwhile
            os.kill(pid_of(target, name), signal.SIGSTOP)
            pause(chance.uniform(0.0, 0.5))
            kill_mirror(process)
            os.kill(pid_of(target, name), signal.SIGCONT)
        elif number % 3 == 2:  # the broker is killed, and the mirror, a little later
            target.kill_server(name)
            pause(chance.uniform(0.0, 1.0))
            kill_mirror(process)
            target.start_server(name)
        else:
            kill_mirror(process)
    finish(run(*arguments, *names))

    assert_equal((source.name_server, "orders"), (target.name_server, "orders"))
