"""One run of mirrors by its seed: mirrors that die, are cut off and are two, and a source that changes.

A source of two brokers, one of which is down at times, gets messages; a mirror copies those of one tag. At
the end each of them must be in the target once, and in the order of its queue. If a source queue loses
messages that were read, the mirror must stop with an error: it may not copy what came later as if nothing had
happened. Troubles of the target are those of exact appenders.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from rmqtools import ClientConfig, MessageQueue, MirrorConfig, ProducerConfig
from rmqtools.aio import Mirror
from rmqtools.engine.exact.tail import FROM, LAST, NEXT, SEEN
from rmqtools.errors import DataLossError, RocketMQError
from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.policy.mirror import decode_pair, key_of
from rmqtools.testing import FakeCluster, Reaction, RequestCode
from tests.support.relay import Relay
from tools.measure.sim.exact import KINDS, Kinds, Trouble, World, kill_writer, simulate_exact, wake
from tools.measure.sim.run import Result

_TOPIC = "appended"  # the target's topic has the name that the target's troubles know
_BROKERS = ("broker-a", "broker-b")
_MESSAGES = 25  # of each source queue
_BEFORE = 3  # messages of each source queue before the first start, which begins at the latest ones
_SETTLE = 10.0
_CUT_OFF = 120.0  # seconds, at most
_PERSISTED = 5.0  # seconds, at most, until a broker has persisted the offset of a group
_GROUP = "RMQTOOLS_EXACT-east"  # of a mirror of the source
_MOST_QUEUES = 4  # of the target
_DOWN = 60.0  # seconds, at most, of a broker of the source


@dataclass(eq=False)
class _Mirroring:
    """A process that mirrors, behind a network of its own."""

    mirror: Mirror
    relay: Relay
    task: "asyncio.Task[Any] | None" = None
    cuts: int = 0  # troubles that keep it from the target

    def cut(self) -> None:
        """Cut it off from the target."""
        self.cuts += 1
        self.relay.cut()

    def heal(self) -> None:
        """Undo one cut."""
        self.cuts -= 1
        if not self.cuts:
            self.relay.heal()

    async def pause(self) -> None:
        """Stop as a stopped process does, as far as its locks are concerned."""
        self.cut()
        for lane in self.mirror._lanes.values():
            await lane._writer.pause()

    async def go_on(self) -> None:
        """Continue; its timers come first."""
        for lane in self.mirror._lanes.values():
            await wake(lane._writer)
        await asyncio.sleep(0.1)  # a connection that was reset delivers nothing
        self.heal()

    async def abandon(self) -> None:
        """End as SIGKILL does."""
        for lane in self.mirror._lanes.values():
            await lane._writer.abandon()
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.mirror.close()
        await self.relay.__aexit__()


@dataclass
class MirrorWorld(World):
    """A source, its target, and the mirrors between them."""

    source: FakeCluster = field(default_factory=lambda: FakeCluster(_BROKERS, cluster="east"))
    wanted: dict[str, list[bytes]] = field(default_factory=dict)  # by broker of the source
    expired: list[bytes] = field(default_factory=list)  # copies
    tainted: set[str] = field(default_factory=set)  # brokers whose queue lost messages that were read
    most_seconds: float = 1500.0
    losses: int = 0  # mirrors that have stopped because the source lost messages
    holds: int = 0  # troubles during which no message is sent
    is_filled: bool | None = None  # None: nothing is sent so far
    filling: "asyncio.Task[None] | None" = None
    is_latest: bool = False
    tags: tuple[str, ...] = ()

    async def open(self, stack: AsyncExitStack) -> None:
        """Start the source."""
        await stack.enter_async_context(self.source)
        self.is_latest = self.chance.random() < 0.5
        self.tags = ("yes",) if self.chance.random() < 0.5 else ()

    def create_topics(self) -> None:
        """Make the topics of the run."""
        self.cluster.create_topic(_TOPIC, queues=2)
        self.source.create_topic(_TOPIC, queues=1)
        for name in _BROKERS:
            self.wanted[name] = []
            for number in range(_BEFORE):
                self.send(name, f"{name} before {number}", is_wanted=not self.is_latest)

    def queue(self, broker: str) -> MessageQueue:
        """Return the queue of a broker of the source."""
        return MessageQueue(_TOPIC, broker, 0)

    def send(self, broker: str, text: str, *, is_wanted: bool = True) -> None:
        """Store a message at the source."""
        tag = "yes" if self.chance.random() < 0.5 else "no"
        self.source.store(_TOPIC, text.encode(), queue=self.queue(broker), tags=tag)
        if is_wanted and (not self.tags or tag in self.tags):
            self.wanted[broker].append(text.encode())

    def copies(self) -> list[bytes]:
        """Return the copies by queue of the target; those that were sent again have another property."""
        stored = [
            message.body
            for message in self.cluster.messages(_TOPIC)
            if APPEND_MARK in message.properties and "again" not in message.properties
        ]
        return [*self.expired, *stored]

    def is_finished(self) -> bool:
        """Return whether all is copied, or the loss was noticed by two mirrors."""
        copied = self.copies()
        is_copied = all(body in copied for bodies in self.wanted.values() for body in bodies)
        if self.noticed:
            return True
        if self.tainted:
            return self.losses > 1 and self.is_filled is not False
        return bool(self.is_filled) and is_copied

    def judge(self) -> list[str]:
        """Return what is wrong at the end."""
        if self.noticed:
            return []
        found, copied = [], self.copies()
        for broker, wanted in self.wanted.items():
            got = [body for body in copied if body.startswith(broker.encode())]
            if got != (wanted[: len(got)] if self.tainted else wanted):
                what = "the first of " if self.tainted else ""
                found.append(f"of {broker}, {got} are copied, want {what}{wanted}")
        if self.tainted and self.losses < 2:
            found.append(f"{self.losses} mirrors noticed what {sorted(self.tainted)} lost")
        return found

    def history(self) -> list[str]:
        """Return what happened, for whoever looks for a cause."""
        return [*self.ended, f"latest {self.is_latest}, tags {self.tags}", str(self.copies())]

    async def start(self) -> None:
        """Start a mirror, as a supervisor starts a process; the first one is followed by messages."""
        relay = Relay(self.cluster.addr())
        await relay.__aenter__()
        config = MirrorConfig(
            source=ClientConfig(name_server=self.source.name_server, request_timeout=1.0),
            target=ProducerConfig(
                name_server=self.cluster.name_server,
                broker_address_map={self.cluster.addr(): relay.addr},
                request_timeout=1.0,
            ),
            topics={_TOPIC: _TOPIC},
            target_name="west",
            begin="latest" if self.is_latest else "earliest",
            tags=self.tags,
            settle_seconds=_SETTLE,
            request_bytes=self.chance.choice((200, 2000, 100_000)),
        )
        mirroring = _Mirroring(Mirror(config), relay)
        mirroring.task = asyncio.create_task(self._copy(mirroring))
        self.writers.append(mirroring)  # type: ignore[arg-type]
        if self.filling is None:
            self.filling = asyncio.create_task(self._fill())

    def note_end(self, error: RocketMQError) -> None:
        """Note an error; one that says that lost copies have expired at the source is right, too."""
        super().note_end(error)
        self.noticed += self.is_contradicted and not self.tainted and isinstance(error, DataLossError)

    async def _copy(self, mirroring: _Mirroring) -> None:
        try:
            await mirroring.mirror.start()
            await mirroring.mirror.run(follow=True)
        except RocketMQError as error:
            self.note_end(error)
            self.losses += bool(self.tainted) and isinstance(error, DataLossError)

    async def _fill(self) -> None:
        """Store messages at the source, once a mirror knows where it begins."""
        while not any(self._has_begun(each.mirror) for each in self.mirrorings):  # noqa: ASYNC110 - their state
            await asyncio.sleep(0.5)
        self.is_filled = False
        for number in range(2 * _MESSAGES):
            await asyncio.sleep(self.chance.uniform(0.0, 6.0))
            while self.holds:  # noqa: ASYNC110 - of several troubles
                await asyncio.sleep(0.5)
            broker = self.chance.choice(_BROKERS)
            self.send(broker, f"{broker} {number}")
        self.is_filled = True

    def _has_begun(self, mirror: Mirror) -> bool:
        """Return whether a mirror knows where each queue with messages begins; others may have been added."""
        begun = {state.source for state in mirror.progress() if not state.waits_for}
        return begun.issuperset(map(self.queue, _BROKERS))

    @property
    def mirrorings(self) -> list[_Mirroring]:
        """The processes that run."""
        return self.writers  # type: ignore[return-value]

    def end(self, broker: str) -> int:
        """Return the end of a source queue."""
        stored = self.source.messages(_TOPIC, self.queue(broker))
        return stored[-1].queue_offset + 1 if stored else 0

    def target(self, broker: str) -> MessageQueue:
        """Return the queue that a source queue is copied to; topics may have grown before."""
        queues = [MessageQueue(_TOPIC, "broker-a", number) for number in range(_MOST_QUEUES)]
        key = key_of(self.queue(broker))
        for queue in queues:
            record = self.cluster.committed(_GROUP + FROM, queue)
            if record is not None and decode_pair(record).key == key:
                return queue
        return queues[_BROKERS.index(broker)]

    def is_read(self, broker: str) -> bool:
        """Return whether all of a source queue is copied or left out, and the position is stored."""
        position = self.cluster.committed(_GROUP + NEXT, self.target(broker))
        return 0 < self.end(broker) == position

    async def rest(self, broker: str) -> bool:
        """Send nothing until all of a queue is copied; False: that takes too long."""
        self.holds += 1
        try:
            for _ in range(120):
                if self.is_read(broker):
                    return True
                await asyncio.sleep(0.5)
            return False
        finally:
            self.holds -= 1

    async def lose(self, broker: str, lost: int) -> None:
        """Delete the last messages of a source queue; then it grows beyond what was read of it.

        Otherwise nobody could see the loss where as many new messages come as were lost, at once.
        """
        self.tainted.add(broker)
        self.source.advance(1.0)
        self.source.end_at(self.queue(broker), max(0, self.end(broker) - lost))
        for number in range(lost + 1):
            await asyncio.sleep(self.chance.uniform(0.0, 6.0))
            self.send(broker, f"{broker} new {number}")

    async def close(self, writer: Any) -> None:
        """End a mirror as it ends by itself."""
        if writer in self.writers:
            self.writers.remove(writer)
            writer.task.cancel()
            await asyncio.gather(writer.task, return_exceptions=True)
            await writer.mirror.close()
            await writer.relay.__aexit__()

    async def kill(self, writer: Any) -> None:
        """End a mirror as SIGKILL does."""
        if writer not in self.writers:
            return
        self.writers.remove(writer)
        await writer.abandon()


async def _cut_off(trouble: Trouble, world: Any) -> None:
    """Cut one mirror off from the target, and start another one, which takes over."""
    if world.writers:
        mirroring = world.writers[0]
        mirroring.cut()
        if trouble.other < 0.8:
            await world.start()
        await asyncio.sleep(trouble.number * _CUT_OFF)
        mirroring.heal()


async def _lose_end(trouble: Trouble, world: Any) -> None:
    """Restore a broker of the source from an older copy, which lacks messages that were read."""
    broker = _BROKERS[int(2 * trouble.other)]
    if await world.rest(broker):
        await world.lose(broker, 1 + int(3 * trouble.number))


async def _make_anew(_: Trouble, world: Any) -> None:
    """Delete the source topic, and make it again."""
    if await world.rest("broker-a") and world.is_read("broker-b"):
        await asyncio.gather(*(world.lose(broker, world.end(broker)) for broker in _BROKERS))


async def _source_down(trouble: Trouble, world: Any) -> None:
    """Take a broker of the source away, kill the mirror meanwhile, and bring it back."""
    if world.is_down:
        return
    world.is_down, name = True, "broker-b"
    world.source.stop(name, in_route=trouble.other < 0.2)
    await kill_writer(trouble, world)
    await asyncio.sleep(trouble.number * _DOWN)
    world.source.restart(name)
    world.is_down = False


async def _send_again(trouble: Trouble, world: Any) -> None:
    """Send old copies into the target again, with their properties; perhaps the mirror dies then.

    Not where the target has lost its end: one of them could come to the offset of the last copy.
    """
    if world.is_contradicted:
        return
    queue = world.target(_BROKERS[int(2 * trouble.other)])
    stored = [each for each in world.cluster.messages(_TOPIC, queue) if APPEND_MARK in each.properties]
    if trouble.number < 0.7:
        await kill_writer(trouble, world)
    for message in stored[: 1 + int(10 * trouble.number)]:
        properties = {APPEND_MARK: message.properties[APPEND_MARK], "again": "1"}
        world.cluster.store(_TOPIC, message.body, queue=queue, properties=properties)


async def _expire(trouble: Trouble, world: Any) -> None:
    """Let all copies of a queue expire, and all that was read at the source.

    Not where the source has lost messages: new ones that nobody has read would expire, and nobody could know.
    """
    broker = _BROKERS[int(2 * trouble.other)]
    target = world.target(broker)
    if await world.rest(broker) and broker not in world.tainted:
        copies = [each for each in world.cluster.messages(_TOPIC, target) if APPEND_MARK in each.properties]
        world.expired += [each.body for each in copies if "again" not in each.properties]
        stored = world.cluster.messages(_TOPIC, target)
        if stored:
            world.cluster.begin_at(target, stored[-1].queue_offset + 1)
        world.source.begin_at(world.queue(broker), world.end(broker))
        if trouble.number < 0.7:
            await kill_writer(trouble, world)


async def _grow(_: Trouble, world: Any) -> None:
    """Give both topics more queues; those of the source stay empty."""
    world.source.create_topic(_TOPIC, queues=2)
    world.cluster.create_topic(_TOPIC, queues=_MOST_QUEUES)


async def _lose_copies(trouble: Trouble, world: Any) -> None:
    """Lose the newest copies of a queue, as a replica without them does that takes over; all mirrors die.

    One that has nothing to append would not look.
    """
    broker = _BROKERS[int(2 * trouble.other)]
    if await world.rest(broker) and not world.is_down:
        world.is_down = True
        world.cluster.stop("broker-a")
        world.end_at(world.target(broker), 1 + int(3 * trouble.number))
        for mirroring in [*world.writers]:
            await world.kill(mirroring)
        world.cluster.restart("broker-a")
        world.is_down = False


async def _lose_numbers(trouble: Trouble, world: Any) -> None:
    """Kill the target's broker; it has not persisted the newest offsets of groups.

    Not before the first ones: nothing else says where ``latest`` was. Nor if messages expire meanwhile, which
    takes brokers hours: only the numbers say then how far the copy was.
    """
    places = [
        (_GROUP + kind, MessageQueue(_TOPIC, "broker-a", number))
        for kind in (LAST, NEXT, SEEN, FROM)
        for number in range(_MOST_QUEUES)
    ]
    before, expired = {place: world.cluster.committed(*place) for place in places}, len(world.expired)
    if world.is_down or not all(before[_GROUP + NEXT, world.target(name)] for name in _BROKERS):
        return
    await asyncio.sleep(trouble.number * _PERSISTED)
    if world.is_down or len(world.expired) > expired:
        return
    world.is_down = True
    world.cluster.stop("broker-a")
    for place, offset in before.items():
        world.cluster.commit(*place, offset)
    if trouble.other < 0.7:
        await kill_writer(trouble, world)
    await asyncio.sleep(1.0)
    world.cluster.restart("broker-a")
    world.is_down = False


async def _die_between_numbers(trouble: Trouble, world: Any) -> None:
    """Kill the mirror while it stores its numbers: it has stored the first ones only."""
    counted = count()
    dies = asyncio.Event()

    def answer(_: object) -> Reaction:
        if next(counted) < int(5 * trouble.number):
            return Reaction.PASS
        dies.set()
        return Reaction.SILENCE

    fault = world.cluster.fault(code=RequestCode.UPDATE_CONSUMER_OFFSET, times=None, answer=answer)
    with suppress(TimeoutError):
        await asyncio.wait_for(dies.wait(), 30.0)
    await kill_writer(trouble, world)
    fault.remove()


MIRROR_KINDS: Kinds = {
    "the target loses its end": _lose_copies,
    "stored numbers are lost": _lose_numbers,
    "the mirror dies between its numbers": _die_between_numbers,
    "the mirror alone is cut off": _cut_off,
    "the source loses its end": _lose_end,
    "the source topic is made anew": _make_anew,
    "a broker of the source is down": _source_down,
    "old copies are sent again": _send_again,
    "messages expire": _expire,
    "both topics grow": _grow,
}


def simulate_mirror(seed: int, kinds: Kinds | None = None) -> Result:
    """Run once; each message must be copied once and in order, or a loss be noticed."""
    return simulate_exact(seed, MirrorWorld, kinds or {**KINDS, **MIRROR_KINDS})
