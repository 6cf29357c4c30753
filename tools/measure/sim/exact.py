"""One run of exact appenders by its seed: writers that die, are paused and are two, and a broker in trouble.

Positions 0, 1, 2, ... are appended by one writer after the other, each in the place of a process. What a
broker stores late, it stores within the time that writers wait for it (``settle_seconds``), or when it
continues after it stood still: that is the window that appenders promise to cover.

What no appender can prevent it must report: a broker that loses the end of its queue, a request of another
process that no lock has stopped. After these, an error is right; rows that are missing or doubled without
one are not.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from errno import EADDRINUSE
from itertools import count
from typing import TypeAlias

import pytest

from rmqtools import Message, MessageQueue, ProducerConfig
from rmqtools.aio import ExactAppender, Producer
from rmqtools.engine.admin import queues
from rmqtools.engine.exact import mirror_lane, own_broker, queue_writer
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.errors import ExactAppendError, RocketMQError
from rmqtools.model.append_mark import APPEND_MARK, AppendMark, parse_mark
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.messages.batch import decode_batch
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing import FakeCluster, Fault, Reaction
from tests.support.skipping_loop import run_skipping
from tools.measure.sim.run import Result

_BROKER, _TOPIC = "broker-a", "appended"
_QUEUE = MessageQueue(_TOPIC, _BROKER, 0)
_END = 60  # positions
_SETTLE = 10.0
_LATE = 8.0  # seconds, at most, until a request of a lost connection is stored
_STANDS_STILL = 90.0  # seconds, at most, of a broker
_PAUSED = 100.0  # seconds, at most, of a writer: longer than brokers keep a lock
_UNTIL_SECOND_WRITES = 90.0  # seconds: a lock ends after 60, and then late requests are waited for
_MOST_TROUBLES = 8
_SECONDS = 240.0  # within which troubles begin
_SECONDS_BETWEEN_JUDGEMENTS = 5
_BATCH = RequestCode.SEND_BATCH_MESSAGE
_PAUSES = (  # between looks: longer ones take half of the requests, and the troubles last much longer
    (queue_writer, "_PAUSE", 2.0),
    (own_broker, "_PAUSE", 1.0),  # shorter than what begins an answering period again
    (own_broker, "_FENCE_PAUSE", 0.5),
    (queues, "_LOOK_PAUSE", 0.5),
    (mirror_lane, "_LOOK", 3.0),
    (mirror_lane, "_FOLLOW_PAUSE", 2.0),
)


@dataclass(frozen=True)
class Trouble:
    """One trouble: what, when, and two numbers from 0 to 1 that it reads."""

    what: str
    begins: float
    number: float
    other: float

    def __str__(self) -> str:
        return f"{self.begins:.2f} s {self.what} ({self.number:.3f}, {self.other:.3f})"


@dataclass(eq=False)
class _Writer:
    """A process that appends: its task, and whether it may run."""

    appender: ExactAppender
    producer: Producer
    may_run: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None

    async def pause(self) -> None:
        """Stop as a stopped process does: it renews no lock."""
        self.may_run.clear()
        await self.appender._writer.pause()

    async def go_on(self) -> None:
        """Continue; its timers come first."""
        await wake(self.appender._writer)
        self.may_run.set()


async def wake(writer: QueueWriter) -> None:
    """Let the timers of a writer run that was paused: those of its connection and of its lock."""
    if not writer.has_lock:
        writer._broker.abort()
    with suppress(RocketMQError):
        await writer.keep()


@dataclass
class World:
    """A cluster and the writers of one run."""

    cluster: FakeCluster
    chance: random.Random
    writers: list[_Writer] = field(default_factory=list)
    is_down: bool = False
    most_seconds: float = 3600.0  # of a run
    ended: list[str] = field(default_factory=list)
    is_contradicted: bool = False  # the queue is not as the writers have left it
    noticed: int = 0  # errors that say so
    late: Fault | None = None  # keeps the next request
    slipped: set[int] = field(default_factory=set)  # stored by a process that nothing could stop
    unseen: set[int] = field(default_factory=set)  # of these, when the writer died that would have noticed

    def stored(self) -> list[int]:
        """Return the positions that are stored, in their order."""
        marks = [
            parse_mark(message.properties.get(APPEND_MARK))
            for message in self.cluster.messages(_TOPIC, _QUEUE)
        ]
        return [mark.position for mark in marks if mark is not None]

    async def open(self, stack: AsyncExitStack) -> None:
        """Start what the run needs beside the cluster."""

    def create_topics(self) -> None:
        """Make the topics of the run."""
        self.cluster.create_topic(_TOPIC, queues=1)

    def is_finished(self) -> bool:
        """Return whether all there is to write is stored, or what was done to the queue was noticed."""
        return self.noticed > 0 or set(self.stored()) == set(range(_END))

    def end_at(self, queue: MessageQueue, lost: int | None = None) -> None:
        """Delete the last messages of a queue; None: all, and its offsets begin at 0 again."""
        stored = self.cluster.messages(queue.topic, queue)
        self.is_contradicted |= bool(stored)
        self.cluster.end_at(queue, stored[-1].queue_offset + 1 - lost if lost and len(stored) > lost else 0)

    async def is_at_work(self) -> bool:
        """Wait a little until a writer is between two appends, and has stored where its last message is.

        Before its broker has persisted that once, no error can be asked for.
        """
        for _ in range(60):
            states = [writer.appender._writer._state for writer in self.writers]
            if states == ["ready"] and self.cluster.committed("RMQTOOLS_EXACT-w", _QUEUE) is not None:
                return True
            await asyncio.sleep(0.5)
        return False

    def note_end(self, error: RocketMQError) -> None:
        """Note an error that has ended a process."""
        self.ended.append(f"{type(error).__name__}: {error}")
        is_lock = "another writer has the lock" in str(error)
        self.noticed += self.is_contradicted and isinstance(error, ExactAppendError) and not is_lock

    def judge(self) -> list[str]:
        """Return what is wrong at the end."""
        if self.noticed:
            return []
        stored = [position for position in self.stored() if position not in self.unseen]
        missing = sorted(set(range(_END)) - set(self.stored()))
        twice = sorted({position for position in stored if stored.count(position) > 1})
        found = [f"positions {missing} are not stored"] if missing else []
        if twice:
            found.append(f"positions {twice} are stored twice")
        elif stored != sorted(stored):
            found.append(f"positions are out of order: {stored}")
        return found

    def history(self) -> list[str]:
        """Return what happened, for whoever looks for a cause."""
        return [*self.ended, str(self.stored())]

    async def start(self) -> None:
        """Start a writer, as a supervisor starts a process."""
        producer = Producer(ProducerConfig(name_server=self.cluster.name_server, request_timeout=1.0))
        await producer.start()
        appender = ExactAppender(producer, _QUEUE, writer="w", settle_seconds=_SETTLE)
        writer = _Writer(appender, producer)
        writer.may_run.set()
        writer.task = asyncio.create_task(self._write(writer))
        self.writers.append(writer)

    async def _write(self, writer: _Writer) -> None:
        appender = writer.appender
        try:
            await appender.start()
            position = -1 if appender.last_position is None else appender.last_position
            while position + 1 < _END:
                await writer.may_run.wait()
                behind = position + 1 + self.chance.randint(1, 8)
                positions = range(position + 1, min(_END, behind))
                await appender.append([Message(_TOPIC, b"%d" % each) for each in positions], positions)
                position = positions[-1]
                await asyncio.sleep(self.chance.uniform(0.0, 8.0))
        except RocketMQError as error:
            self.note_end(error)

    async def close(self, writer: _Writer) -> None:
        """End a writer as it ends by itself: between two appends, so that it releases its lock."""
        if writer not in self.writers or writer.task is None:
            return
        self.writers.remove(writer)
        writer.may_run.clear()
        for _ in range(300):
            if writer.appender._writer._state == "ready":
                break
            await asyncio.sleep(0.1)
        writer.task.cancel()
        await asyncio.gather(writer.task, return_exceptions=True)
        await writer.appender.close()
        await writer.producer.close()

    async def kill(self, writer: _Writer) -> None:
        """End a writer as SIGKILL does: its requests stay where they are, its lock, too."""
        if writer not in self.writers or writer.task is None:  # two troubles met
            return
        self.writers.remove(writer)
        writer.task.cancel()
        await asyncio.gather(writer.task, return_exceptions=True)
        await writer.appender._writer.abandon()
        await writer.appender.close()  # of the rest of its process
        await writer.producer.close()
        await writer.producer.close()


Kinds: TypeAlias = Mapping[str, Callable[[Trouble, World], Awaitable[None]]]


def plan(chance: random.Random, kinds: Kinds) -> list[Trouble]:
    """Return the troubles of one run, by their beginning."""
    troubles = [
        Trouble(chance.choice(list(kinds)), chance.uniform(0.0, _SECONDS), chance.random(), chance.random())
        for _ in range(chance.randint(1, _MOST_TROUBLES))
    ]
    return sorted(troubles, key=lambda trouble: trouble.begins)


def simulate_exact(
    seed: int,
    make: Callable[[FakeCluster, random.Random], World] = World,
    kinds: Kinds | None = None,
) -> Result:
    """Simulate one run of exact appenders; each position must be stored once, and in order.

    Args:
        seed: decides everything.
        make: makes the world of the run.
        kinds: of troubles; None: those of exact appenders.
    """
    chance, kinds = random.Random(seed), kinds or {**KINDS, **OWN_KINDS}
    troubles = plan(chance, kinds)
    result = Result(seed, [])
    random.seed(chance.getrandbits(64))
    world: list[World] = []
    try:
        with pytest.MonkeyPatch.context() as patch:
            for module, name, seconds in _PAUSES:
                patch.setattr(module, name, seconds)
            run_skipping(lambda: _scenario(troubles, kinds, chance, world, make), in_haste=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        if isinstance(error, OSError) and error.errno == EADDRINUSE:
            return simulate_exact(seed, make, kinds)  # another process has taken the port of a stopped server
        result.found.append(f"{type(error).__name__}: {error}")
    lines = [line for each in world for line in each.history()]
    result.history = "\n".join([*map(str, troubles), *lines, ""])
    result.found += [finding for each in world for finding in each.judge()]
    return result


async def _scenario(
    troubles: list[Trouble],
    kinds: Kinds,
    chance: random.Random,
    worlds: list[World],
    make: Callable[[FakeCluster, random.Random], World],
) -> None:
    async with FakeCluster(auto_create_topics=False) as cluster, AsyncExitStack() as stack:
        world = make(cluster, random.Random(chance.getrandbits(64)))
        await world.open(stack)
        world.create_topics()
        worlds.append(world)
        async with asyncio.timeout(world.most_seconds):
            await world.start()
            began = asyncio.get_running_loop().time()
            striking = [asyncio.create_task(_strike(trouble, kinds, world, began)) for trouble in troubles]
            supervising = asyncio.create_task(_supervise(world))
            await asyncio.gather(*striking)
            await supervising
            await _supervise(world)  # a trouble may have come after the end
            await asyncio.sleep(2 * _LATE)  # what may still come late
            for writer in [*world.writers]:
                await world.kill(writer)


async def _supervise(world: World) -> None:
    """Start a writer whenever none is left, until one has come to the end."""
    for second in count():
        if second % _SECONDS_BETWEEN_JUDGEMENTS == 0 and world.is_finished():
            return
        for writer in [*world.writers]:
            if writer.task is not None and writer.task.done():
                await world.kill(writer)
        if not world.writers:
            await world.start()
        await asyncio.sleep(1.0)


async def _strike(trouble: Trouble, kinds: Kinds, world: World, began: float) -> None:
    await asyncio.sleep(max(0.0, began + trouble.begins - asyncio.get_running_loop().time()))
    await kinds[trouble.what](trouble, world)


async def kill_writer(_: Trouble, world: World) -> None:
    """Kill the writer that runs longest; what slipped in stays unseen (``docs/mirror.md`` says so)."""
    world.unseen |= world.slipped
    if world.writers:
        await world.kill(world.writers[0])


async def _second(_: Trouble, world: World) -> None:
    await world.start()


async def _pause_writer(trouble: Trouble, world: World) -> None:
    """Stop a writer for a while, and start another one meanwhile, which gets the lock when it ends.

    The other one may be gone when the first continues.
    """
    if not world.writers:
        return
    writer = world.writers[0]
    await writer.pause()
    if trouble.other < 0.7:
        await world.start()
        second = world.writers[-1]
        await asyncio.sleep(_UNTIL_SECOND_WRITES)
        if trouble.other < 0.4:
            await world.close(second)
    await asyncio.sleep(trouble.number * _PAUSED)
    await writer.go_on()


async def _freeze(trouble: Trouble, world: World) -> None:
    world.cluster.freeze(_BROKER)
    await asyncio.sleep(trouble.number**3 * _STANDS_STILL)
    world.cluster.thaw(_BROKER)


async def _freeze_and_kill(trouble: Trouble, world: World) -> None:
    world.cluster.freeze(_BROKER)
    await asyncio.sleep(trouble.number * 10.0)
    await kill_writer(trouble, world)
    await asyncio.sleep(trouble.other * _STANDS_STILL)
    world.cluster.thaw(_BROKER)


async def _restart(trouble: Trouble, world: World) -> None:
    if world.is_down:
        return
    world.is_down = True
    world.cluster.stop(_BROKER)
    await asyncio.sleep(trouble.number * 20.0)
    world.cluster.restart(_BROKER)
    world.is_down = False


async def _lose_answers(trouble: Trouble, world: World) -> None:
    """Store the next requests, and break the connection instead of answering."""
    cluster = world.cluster

    def stored_and_cut(_: object) -> Reaction:
        asyncio.get_running_loop().call_soon(cluster.disconnect, _BROKER)
        return Reaction.SWALLOW

    cluster.fault(code=_BATCH, times=1 + int(2 * trouble.number), answer=stored_and_cut)


async def _lose_requests(trouble: Trouble, world: World) -> None:
    times = 1 + int(2 * trouble.number)
    world.cluster.fault(code=_BATCH, times=times, answer=Reaction.DISCONNECT)


async def _late(trouble: Trouble, world: World) -> None:
    """Keep a request in a buffer for a while; perhaps its connection breaks meanwhile."""
    if world.late is not None and not world.late.fired():  # both would keep one request, for longer
        return
    delay = trouble.number * _LATE
    fault = world.late = world.cluster.fault(code=_BATCH, answer=Reaction.PASS, delay=delay)
    if trouble.other < 0.6:
        for _ in range(200):
            if fault.fired():
                await asyncio.sleep(trouble.other * delay)
                world.cluster.disconnect(_BROKER)
                return
            await asyncio.sleep(0.1)


async def _hide(trouble: Trouble, world: World) -> None:
    world.cluster.hide_new(_BROKER)
    await asyncio.sleep(trouble.number * 30.0)
    world.cluster.show_all(_BROKER)


async def _hide_and_kill(trouble: Trouble, world: World) -> None:
    world.cluster.hide_new(_BROKER)
    await asyncio.sleep(trouble.other * 10.0)
    await kill_writer(trouble, world)
    await asyncio.sleep(60.0 + trouble.number * 30.0)
    world.cluster.show_all(_BROKER)


async def _refuse(trouble: Trouble, world: World) -> None:
    code = (ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR)[int(2 * trouble.other)]
    world.cluster.fault(code=_BATCH, times=1 + int(3 * trouble.number), answer=code)


async def _foreign(trouble: Trouble, world: World) -> None:
    with suppress(RocketMQError):
        world.cluster.store(_TOPIC, *[b"foreign"] * (1 + int(100 * trouble.number)), queue=_QUEUE)


async def _prefix(_: Trouble, world: World) -> None:
    """Store the first messages of a batch only, as a broker does that is killed while it copies one."""

    def store_some(request: RemotingCommand) -> Reaction:
        batch = decode_batch(request.body)
        for one in batch[: len(batch) // 2]:
            queue = MessageQueue(_TOPIC, _BROKER, int(request.ext_fields["e"] or 0))
            world.cluster.store(_TOPIC, one.body, queue=queue, properties=one.properties)
        return Reaction.DISCONNECT

    world.cluster.fault(code=_BATCH, answer=store_some)


async def _lose_end(trouble: Trouble, world: World) -> None:
    """Kill the broker; a replica takes over that lacks the newest messages."""
    if not await world.is_at_work() or world.is_down:  # meanwhile
        return
    world.is_down = True
    world.cluster.stop(_BROKER)
    world.end_at(_QUEUE, 1 + int(5 * trouble.number))
    await asyncio.sleep(trouble.other * 20.0)
    world.cluster.restart(_BROKER)
    world.is_down = False


async def _make_anew(_: Trouble, world: World) -> None:
    """Delete the topic, and make it again."""
    if await world.is_at_work():
        world.end_at(_QUEUE)


async def _unstopped(trouble: Trouble, world: World) -> None:
    """Store a request of a process that was stopped between its look at the clock and the write.

    If the others have come to the end meanwhile, nobody appends after it, and so nobody notices.
    """
    if not await world.is_at_work() or world.is_down:
        return
    is_late = world.is_finished()
    last = world.writers[0].appender.last_position
    begin = 0 if last is None else last + 1
    world.is_contradicted |= begin < _END  # else the writer appends nothing more, and cannot notice it
    for position in range(begin, min(_END, begin + 1 + int(3 * trouble.number))):
        mark = str(AppendMark(position, "w"))
        world.cluster.store(_TOPIC, b"%d" % position, queue=_QUEUE, properties={APPEND_MARK: mark})
        (world.unseen if is_late else world.slipped).add(position)


KINDS: Kinds = {
    "the writer dies": kill_writer,
    "a second writer comes": _second,
    "the writer is paused": _pause_writer,
    "the broker stands still": _freeze,
    "the broker stands still and the writer dies": _freeze_and_kill,
    "the broker is restarted": _restart,
    "answers are lost": _lose_answers,
    "requests are lost": _lose_requests,
    "a request is stored late": _late,
    "messages are not visible": _hide,
    "messages are not visible and the writer dies": _hide_and_kill,
    "requests are refused": _refuse,
    "others write": _foreign,
    "a part of a request is stored": _prefix,
}

OWN_KINDS: Kinds = {
    "the queue loses its end": _lose_end,
    "the topic is made anew": _make_anew,
    "another process writes": _unstopped,
}
"""Troubles of exact appenders alone."""
