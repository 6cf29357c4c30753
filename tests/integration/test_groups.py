"""Whole groups on three masters: shares, joins, leaves, crashes, order, storms; some with Java members."""

import asyncio
import itertools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from rmqtools import (
    ConsumeContext,
    ConsumeFromWhere,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
    aio,
)
from rmqtools.allocate import AllocateAveragely, share, strategy_of
from tests.support.cluster_scene import wait_until
from tests.support.java_consumer import JavaConsumer
from tests.support.patience import PATIENCE
from tests.support.python_consumer import PythonConsumer

pytestmark = pytest.mark.docker

BROKERS = ("broker-a", "broker-b", "broker-c")
SETTLED_WITHIN = 45.0  # seconds after a change until every queue is owned once


def config(name_server: str, group: str, **settings: Any) -> PushConsumerConfig:
    return PushConsumerConfig(
        name_server=name_server,
        group=group,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        **settings,
    )


def queues_of(topic: str, per_broker: int) -> list[MessageQueue]:
    return [MessageQueue(topic, broker, number) for broker in BROKERS for number in range(per_broker)]


# shares


@contextmanager
def sending(name_server: str, topic: str, count: int) -> Iterator[threading.Thread]:
    """Send numbered messages in the background, spread over a quarter of a minute."""

    def send() -> None:
        with Producer(ProducerConfig(name_server=name_server, send_timeout=10.0)) as producer:
            for start in range(0, count, count // 60):
                numbers = range(start, min(start + count // 60, count))
                producer.send_many([Message(topic, b"%d" % number) for number in numbers])
                threading.Event().wait(0.25)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    yield thread
    thread.join()


def await_shared(members: Iterable[JavaConsumer], queues: Sequence[MessageQueue], what: str) -> None:
    """Wait until each member reports just the share that its strategy gives it; print how long it took."""
    began = time.monotonic()
    living = list(members)
    strategy = strategy_of(living[0].option("--strategy"))
    client_ids = [member.client_id for member in living]
    shares = {one: set(share(strategy, "g", one, queues, client_ids)) for one in client_ids}
    assert Counter(itertools.chain.from_iterable(shares.values())) == Counter(queues)

    wait_until(
        lambda: {member.client_id: member.assigned for member in living} == shares, seconds=SETTLED_WITHIN
    )
    print(f"{what}: every queue owned once after {time.monotonic() - began:.1f} s")


@pytest.mark.parametrize(
    "count",
    [pytest.param(3_000, id="3000"), pytest.param(60_000, id="60000", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("strategy", ["AVG", pytest.param("CONSISTENT_HASH", marks=pytest.mark.slow)])
def test_java_members_and_ours_share_every_queue_once_through_joins_leaves_and_crashes(
    docker_cluster, new_topic, java_peer, group, strategy, count
):
    topic = new_topic(queues=8)
    queues = queues_of(topic, 8)
    server, options = docker_cluster.name_server, ("--strategy", strategy, "--print")
    java = [JavaConsumer(java_peer, server, group, topic, *options) for _ in range(3)]
    ours = [PythonConsumer(server, group, topic, *options) for _ in range(3)]

    with ExitStack() as stack, sending(server, topic, count):
        for member in (java[0], ours[0], java[1], ours[1]):
            stack.enter_context(member)
        await_shared([*java[:2], *ours[:2]], queues, f"{strategy}: two and two")
        stack.enter_context(ours[2])
        await_shared([*java[:2], *ours], queues, f"{strategy}: one of ours joins")
        java[0].stop()
        await_shared([java[1], *ours], queues, f"{strategy}: a Java member leaves")
        ours[0].stop()
        await_shared([java[1], *ours[1:]], queues, f"{strategy}: one of ours leaves")
        ours[1].kill()
        await_shared([java[1], ours[2]], queues, f"{strategy}: one of ours is killed")
        stack.enter_context(java[2])
        await_shared([*java[1:], ours[2]], queues, f"{strategy}: a Java member joins")
        java[1].kill()
        await_shared([java[2], ours[2]], queues, f"{strategy}: a Java member is killed")

        def consumed() -> set[int]:
            return {int(row["body"]) for member in (*java, *ours) for row in member.messages}

        wait_until(lambda: len(consumed()) == count, seconds=PATIENCE)

    assert consumed() == set(range(count))


# order


class OrderWatch:
    """Sees what the members of a group consume, and notes what is out of order.

    Keys are numbered from 0 upwards each. While one member holds a queue, it must see a key's numbers one
    after the other; in the whole group no number may be seen before the one in front of it. A member holds a
    queue anew after another member has seen the key, or when its queue listener says so, which may be after
    the first messages.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._highest: dict[str, int] = defaultdict(lambda: -1)
        self._last: dict[str, tuple[str, int, int]] = {}  # by key: the member, its span, the number
        self._spans: dict[tuple[str, MessageQueue], int] = {}
        self._numbers = itertools.count()
        self.wrong: list[str] = []
        self.seen = 0

    def listener(self, member: str) -> Callable[[Sequence[MessageExt], ConsumeContext], None]:
        def listen(messages: Sequence[MessageExt], context: ConsumeContext) -> None:
            with self._lock:
                for message in messages:
                    self._note(member, context.message_queue, message)

        return listen

    def queue_listener(self, member: str) -> Callable[..., None]:
        """A queue that was not held before begins a new span."""
        before: set[MessageQueue] = set()

        def changed(_: str, __: Sequence[MessageQueue], mine: Sequence[MessageQueue]) -> None:
            nonlocal before
            with self._lock:
                for queue in set(mine) - before:
                    self._spans[member, queue] = next(self._numbers)
                before = set(mine)

        return changed

    def all_seen(self, numbers_per_key: dict[str, int]) -> bool:
        with self._lock:
            return all(self._highest[key] == count - 1 for key, count in numbers_per_key.items())

    def _note(self, member: str, queue: MessageQueue, message: MessageExt) -> None:
        self.seen += 1
        key, _, text = message.body.decode().partition(":")
        number, span = int(text), self._spans.get((member, queue), -1)
        *holding, last = self._last.get(key, ("", -1, -1))
        if holding == [member, span] and number != last + 1:
            self.wrong.append(f"{member} saw {key}:{number} after {last} of {queue}")
        if number > self._highest[key] + 1:
            self.wrong.append(f"{member} saw {key}:{number}, the group had only {self._highest[key]}")
        self._last[key] = member, span, number
        self._highest[key] = max(self._highest[key], number)


@pytest.mark.slow  # the simulation judges order in every run
def test_no_key_is_seen_out_of_order_while_members_join_and_leave(docker_cluster, new_topic, group):
    topic, watch = new_topic(queues=4), OrderWatch()
    server, names = docker_cluster.name_server, itertools.count(1)

    def member() -> PushConsumer:
        name = f"member-{next(names)}"
        made = PushConsumer(
            config(server, group, instance_name=name, orderly=True),
            message_queue_listener=watch.queue_listener(name),
        )
        made.subscribe(topic, watch.listener(name))
        made.start()
        return made

    sent: Counter[str] = Counter()
    stop = threading.Event()

    def send() -> None:
        with Producer(ProducerConfig(name_server=server, send_timeout=10.0)) as producer:
            for number in itertools.count():
                if stop.wait(0.02):
                    return
                for key in map("key-{}".format, range(24)):
                    producer.send_orderly(Message(topic, f"{key}:{number}".encode(), sharding_key=key))
                    sent[key] += 1

    sender = threading.Thread(target=send)
    members = [member(), member()]
    sender.start()
    try:
        deadline = time.monotonic() + 60
        for turn in itertools.count():
            if time.monotonic() > deadline:
                break
            threading.Event().wait(1.0)
            if turn % 2:
                members.pop(0).close()
            else:
                members.append(member())
    finally:
        stop.set()
        sender.join()
    wait_until(lambda: watch.all_seen(sent))
    for last in members:
        last.close()

    assert watch.wrong == []
    assert watch.seen >= sum(sent.values()) > 0


# storms


@pytest.mark.slow  # simulated rounds are counted
def test_a_join_makes_few_rounds_and_moves_no_queue_twice(docker_cluster, new_topic, group):
    asyncio.run(_join_a_large_group(docker_cluster.name_server, new_topic(queues=21), group))


async def _join_a_large_group(name_server: str, topic: str, group: str) -> None:
    """40 members, 63 queues; moves are noted by each member's queue listener."""
    moves: list[tuple[str, MessageQueue]] = []
    before: dict[str, set[MessageQueue]] = defaultdict(set)

    def note(member: str) -> Callable[..., None]:
        def changed(_: str, __: Sequence[MessageQueue], mine: Sequence[MessageQueue]) -> None:
            moves.extend((member, queue) for queue in set(mine) - before[member])
            before[member] = set(mine)

        return changed

    def member(number: int) -> aio.PushConsumer:
        name = f"member-{number:02}"
        made = aio.PushConsumer(
            config(name_server, group, instance_name=name),
            strategy=AllocateAveragely(),
            message_queue_listener=note(name),
        )
        made.subscribe(topic, _nothing)
        return made

    members = [member(number) for number in range(40)]
    newcomer = member(99)
    try:
        await asyncio.gather(*(one.start() for one in members))
        await _until(lambda: _owned(members, topic) == Counter(queues_of(topic, 21)), 60)
        await _quiet(members, 3.0)
        moves.clear()
        rounds = [one._ownership.rounds.count for one in members]
        await newcomer.start()
        await asyncio.sleep(5.0)  # the promise is about these five seconds
        made = [one._ownership.rounds.count - count for one, count in zip(members, rounds, strict=True)]
        gained = Counter(queue for _, queue in moves)

        assert _owned([*members, newcomer], topic) == Counter(queues_of(topic, 21))
        assert max(made) <= len(BROKERS) + 1, made
        assert max(gained.values()) == 1, gained
        moves.clear()
        await asyncio.sleep(5.0)
        assert moves == []
    finally:
        await asyncio.gather(*(one.close() for one in (*members, newcomer)))


async def _nothing(messages: Sequence[MessageExt], context: ConsumeContext) -> None: ...


def _owned(members: Iterable[aio.PushConsumer], topic: str) -> Counter[MessageQueue]:
    return Counter(queue for member in members for queue in member.queues if queue.topic == topic)


async def _until(true: Callable[[], bool], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 # other tasks change what is looked at; nobody tells
            await asyncio.sleep(0.05)


async def _quiet(members: Sequence[aio.PushConsumer], seconds: float) -> None:
    """Wait until no member has made a round for so long."""
    counts, since = [-1], time.monotonic()
    while time.monotonic() - since < seconds:
        now = [member._ownership.rounds.count for member in members]
        if now != counts:
            counts, since = now, time.monotonic()
        await asyncio.sleep(0.1)
