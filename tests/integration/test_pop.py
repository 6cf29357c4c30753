"""Groups that pop, on a real broker of their own: 5.5.0 forbids popping where the timer wheel is off."""

import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    ConsumeContext,
    Message,
    MessageExt,
    Producer,
    ProducerConfig,
    PushConsumer,
)
from rmqtools.cluster import LocalCluster
from rmqtools.group import FindingKind, MessageRequestMode
from rmqtools.model.trace import SubAfterTrace, SubBeforeTrace
from tests.support.bursts import note_sources
from tests.support.cluster_scene import wait_until
from tests.support.listening import Heard, Listener, listening
from tests.support.raw_sends import create_batch_topic, send_batch
from tests.support.resting import RestingCluster
from tests.support.trace_records import await_records

pytestmark = pytest.mark.broker

INVISIBLE = 8.0  # seconds
REVIVED = 60.0  # seconds in which a broker gives out again what nobody acknowledged


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with RestingCluster(timer_wheel=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(cluster) -> Iterator[Admin]:
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        yield admin


@pytest.fixture(scope="module")
def producer(cluster) -> Iterator[Producer]:
    with Producer(ProducerConfig(name_server=cluster.name_server, group="p")) as producer:
        yield producer


@pytest.fixture
def topic(admin, group) -> str:
    """A topic of four queues that the group pops."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    admin.create_topic(name, read_queue_nums=4, write_queue_nums=4)
    admin.create_group(group)
    admin.set_message_request_mode(name, group, MessageRequestMode.POP)
    return name


def failing_once(*bodies: bytes) -> Heard:
    """A listener that fails the first try of some messages."""

    def answer(messages: Sequence[MessageExt], context: ConsumeContext) -> None:
        if messages[0].body in bodies and messages[0].reconsume_times == 0:
            raise ValueError("told to fail")

    return Heard(answer)


def tries(body: bytes, *members: Heard) -> list[int]:
    """The numbers of a message's deliveries."""
    return sorted(m.reconsume_times for each in members for m in each.messages if m.body == body)


def member(
    cluster: LocalCluster, group: str, topic: str, heard: Listener, name: str = "one", **settings: Any
) -> AbstractContextManager[PushConsumer]:
    given: dict[str, Any] = {"group": group, "instance_name": name, "client_rebalance": False}
    given |= {"pop_invisible_time": INVISIBLE, "request_timeout": 10.0, "rebalance_interval": 1.0}
    return listening(cluster.name_server, topic, heard, **given, **settings)


def send(producer: Producer, topic: str, count: int, prefix: str = "m") -> set[bytes]:
    bodies = [f"{prefix}-{number}".encode() for number in range(count)]
    for start in range(0, count, 100):
        producer.send_many([Message(topic, body) for body in bodies[start : start + 100]])
    return set(bodies)


def lag(admin: Admin, group: str, topic: str) -> int:
    stats = admin.fetch_consume_stats(group, topic).offset_table.values()
    return sum(queue.broker_offset - queue.consumer_offset for queue in stats)


def popped_queues(consumer: PushConsumer, topic: str) -> list[int]:
    return [queue.queue_id for queue in consumer.queues if queue.topic == topic]


def test_two_members_pop_everything_once_and_what_failed_once_more(cluster, admin, producer, group, topic):
    heard = [failing_once(b"m-7"), failing_once(b"m-7")]
    bodies = send(producer, topic, 2000)
    with (
        member(cluster, group, topic, heard[0]) as first,
        member(cluster, group, topic, heard[1], "two"),
    ):
        wait_until(lambda: len(all_bodies(heard)) == 2000)
        wait_until(lambda: lag(admin, group, topic) == 0)
        info = admin.fetch_running_info(group, first.client_id)
        found = admin.check_group(group).findings
        wait_until(
            lambda: all_bodies(heard)[b"m-7"] == 2, seconds=REVIVED
        )  # later than what was not acknowledged
        seen = all_bodies(heard)

    assert set(seen) == bodies
    assert {body for body, count in seen.items() if count > 1} == {b"m-7"}
    assert tries(b"m-7", *heard) == [0, 1]
    assert all(each.bodies for each in heard)
    assert {queue.queue_id for queue in info.mq_pop_table} == {-1}
    assert info.status_table[topic].pull_tps > 0
    assert {one.kind for one in found} <= {FindingKind.MEMBER_FAILS}


def test_what_threads_pop_is_acknowledged_and_what_failed_comes_once_more(
    cluster, producer, group, topic, monkeypatch
):
    sources = note_sources(monkeypatch)
    heard = failing_once(b"m-7000")
    bodies = send(producer, topic, 8000)
    with member(cluster, group, topic, heard):
        wait_until(lambda: len(set(heard.bodies)) == 8000)
        wait_until(
            lambda: heard.bodies.count(b"m-7000") == 2, seconds=REVIVED
        )  # later than what was not acknowledged
        seen = Counter(heard.bodies)

    assert sources
    assert set(seen) == bodies
    assert {body for body, count in seen.items() if count > 1} == {b"m-7000"}


def all_bodies(heard: Sequence[Heard]) -> Counter[bytes]:
    return Counter(body for each in heard for body in each.bodies)


_KILLED = """
import sys, time
from rmqtools import ConsumeFromWhere, PushConsumer, PushConsumerConfig

def listen(messages, context):
    print("got", flush=True)
    time.sleep(60)

config = PushConsumerConfig(
    name_server=sys.argv[1], group=sys.argv[2], client_rebalance=False, pop_invisible_time=5.0,
    consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
)
consumer = PushConsumer(config)
consumer.subscribe(sys.argv[3], listen)
consumer.start()
time.sleep(60)
"""


def test_what_a_killed_member_had_comes_to_another_one(cluster, admin, producer, group, topic):
    bodies = send(producer, topic, 20)
    command = [sys.executable, "-c", _KILLED, cluster.name_server, group, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("got")
        finally:
            process.send_signal(signal.SIGKILL)
    heard = Heard()
    with member(cluster, group, topic, heard, "heir"):
        wait_until(lambda: set(heard.bodies) == bodies, seconds=REVIVED)
        wait_until(lambda: lag(admin, group, topic) == 0)

    assert any(tries(body, heard) == [1] for body in bodies)


@pytest.mark.slow  # each mode has its test
def test_a_group_goes_from_pop_to_pull_and_back_and_loses_nothing(cluster, admin, producer, group, topic):
    """Right after the change to PULL messages may come twice: a pop that the broker holds takes them too."""
    heard = failing_once(b"popped-0")
    with member(cluster, group, topic, heard) as consumer:
        wait_until(lambda: popped_queues(consumer, topic) == [-1])
        wanted = send(producer, topic, 50, "popped")
        wait_until(lambda: set(heard.bodies) >= wanted)
        admin.set_message_request_mode(topic, group, MessageRequestMode.PULL)
        wait_until(lambda: popped_queues(consumer, topic) == [0, 1, 2, 3])
        wanted |= send(producer, topic, 50, "pulled")
        wait_until(lambda: set(heard.bodies) >= wanted)
        wait_until(lambda: tries(b"popped-0", heard) == [0, 1], seconds=REVIVED)  # by pulling the retry topic
        admin.set_message_request_mode(topic, group, MessageRequestMode.POP)
        wait_until(lambda: popped_queues(consumer, topic) == [-1])
        wanted |= send(producer, topic, 50, "again")
        wait_until(lambda: set(heard.bodies) >= wanted)
        wait_until(lambda: lag(admin, group, topic) == 0)

    twice = {body for body, count in Counter(heard.bodies).items() if count > 1}
    assert {body for body in twice if not body.startswith(b"pulled")} == {b"popped-0"}  # see the docstring


def test_a_failed_message_of_a_popped_batch_comes_again_alone(cluster, admin, group):
    """Brokers do not deliver a popped batch again, so the message goes through the group's retry topic."""
    queue = create_batch_topic(admin)
    admin.create_group(group)
    admin.set_message_request_mode(queue.topic, group, MessageRequestMode.POP)
    heard = failing_once(b"1")

    def listen(messages: Sequence[MessageExt], context: ConsumeContext) -> None:
        context.delay_level_when_next_consume = 1
        heard(messages, context)

    with member(cluster, group, queue.topic, listen, tags="t0 || t1"):
        send_batch(admin, queue, range(6))
        wait_until(lambda: heard.bodies.count(b"1") == 2)

    assert sorted(heard.bodies) == [b"0", b"1", b"1", b"3", b"4"]
    assert tries(b"1", heard) == [0, 1]


@pytest.mark.slow  # in every run, with pulled messages: behaviour/test_consumer_traces.py
def test_deliveries_of_popped_messages_are_traced(cluster, admin, producer, group, topic):
    heard, traces = failing_once(b"m-0"), f"traces-{uuid.uuid4().hex[:12]}"
    admin.create_topic(traces, read_queue_nums=1, write_queue_nums=1)
    send(producer, topic, 2)
    with member(cluster, group, topic, heard, enable_trace=True, trace_topic=traces):
        heard.wait(3, seconds=REVIVED)
    with Client(ClientConfig(name_server=cluster.name_server)) as client:
        records = await_records(client, admin, traces, 6)

    begun = {one.request_id: one.retry_times for one in records if isinstance(one, SubBeforeTrace)}
    ended = {one.request_id: one.success for one in records if isinstance(one, SubAfterTrace)}
    told = sorted((begun[request_id], ended[request_id]) for request_id in begun)
    assert told == [(0, False), (0, True), (1, True)]
