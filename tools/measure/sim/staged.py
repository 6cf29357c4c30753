"""One run of staged writes by its seed: drivers of one query that die, are paused, and are several.

A driver reads the rows 0, 1, 2, ... of a source in micro-batches, as Spark does: a checkpoint has the end of
each one that was begun, and the number of each that has ended. Drivers share a checkpoint, or have copies of
it, of which some are older; decisions may be cut off. Whatever happens, the topic must have the first rows of
the source, each once and in their order, with all rows of each commit that has returned; and all rows there
are, unless a checkpoint was copied or decisions were lost.
"""

import asyncio
from contextlib import AsyncExitStack
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from rmqtools import Message, MessageQueue, ProducerConfig, QueueRange
from rmqtools.aio import Producer, StagedWrites
from rmqtools.engine.exact.copy_lane import CopyLane
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.engine.exact.staged_writes import StagedLane
from rmqtools.engine.exact.writer_decisions import WriterDecisions
from rmqtools.errors import ExactAppendError, RocketMQError
from rmqtools.model.staged import decisions_topic
from rmqtools.policy.staged import BatchDecision
from tools.measure.sim.exact import KINDS, Kinds, Trouble, World, simulate_exact
from tools.measure.sim.run import Result

_TOPIC, _STAGING = "appended", "staging"
_DECISIONS = decisions_topic(_STAGING)
_QUEUE, _STAGED = MessageQueue(_TOPIC, "broker-a", 0), MessageQueue(_STAGING, "broker-a", 0)
_DECIDED = MessageQueue(_DECISIONS, "broker-a", 0)
_ROWS = 40
_MOST_ROWS = 6  # of a micro-batch
_SETTLE = 10.0
_MOST_ERRORS = 3  # of drivers, one after the other, until the query counts as stopped
_DRIVER: "ContextVar[_Driver | None]" = ContextVar("driver", default=None)


class _ConcurrentUpdateError(Exception):
    """Another driver has written the same file of a checkpoint: Spark ends the query."""


@dataclass
class _Checkpoint:
    """Ends of the micro-batches that were begun, and how many have ended."""

    ends: list[int] = field(default_factory=list)
    done: int = 0

    def begin(self, batch: int) -> int:
        """Return the first row of a micro-batch."""
        return self.ends[batch - 1] if batch else 0

    def plan(self, batch: int, end: int) -> None:
        if len(self.ends) != batch:
            raise _ConcurrentUpdateError
        self.ends.append(end)

    def finish(self, batch: int) -> None:
        if self.done != batch:
            raise _ConcurrentUpdateError
        self.done += 1


@dataclass(eq=False)
class _Driver:
    """A driver: its task, whether it may run, and the appenders that it has open."""

    producer: Producer
    checkpoint: _Checkpoint
    pace: float  # seconds before and after it decides, in which it may be paused
    may_run: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    appenders: list[QueueWriter] = field(default_factory=list)
    is_killed: bool = False

    async def pause(self) -> None:
        """Stop as a stopped process does: it renews no lock."""
        self.may_run.clear()
        for appender in self.appenders:
            await appender.pause()

    async def go_on(self) -> None:
        """Continue."""
        self.may_run.set()


class _Writes(StagedWrites):
    """Staged writes whose driver may be paused, or killed, where a process may."""

    def _lane(self, opened: AsyncExitStack, queue: MessageQueue) -> StagedLane:
        driver, own = _DRIVER.get(), AsyncExitStack()
        assert driver is not None
        lane = super()._lane(own, queue)
        driver.appenders.append(lane.writer)
        opened.push_async_callback(_close, driver, lane.writer)
        own.pop_all()
        return lane


async def _close(driver: _Driver, appender: QueueWriter) -> None:
    driver.appenders.remove(appender)
    if driver.is_killed:  # its lock stays
        await appender.abandon()
    else:
        await appender.close()


async def _wait_for_driver(*_: object) -> None:
    driver = _DRIVER.get()
    assert driver is not None
    await driver.may_run.wait()


async def _pass_time() -> None:
    driver = _DRIVER.get()
    assert driver is not None
    await asyncio.sleep(driver.pace)
    await driver.may_run.wait()


@dataclass
class _StagedWorld(World):
    """Drivers of one query, and its checkpoint."""

    checkpoint: _Checkpoint = field(default_factory=_Checkpoint)
    older: list[_Checkpoint] = field(default_factory=list)  # copies of it
    returned: int = 0  # rows of commits that have returned
    may_stop: bool = False  # whether the query may end with an error, for good
    errors: int = 0  # one after the other

    def create_topics(self) -> None:
        for topic in (_TOPIC, _STAGING, _DECISIONS):
            self.cluster.create_topic(topic, queues=1, broker_names=["broker-a"])

    def is_finished(self) -> bool:
        rows = self.stored_rows()
        is_wrong = rows != list(range(len(rows)))  # it stays so
        return is_wrong or len(rows) == _ROWS or (self.may_stop and self.errors >= _MOST_ERRORS)

    def stored_rows(self) -> list[int]:
        bodies = (message.body.decode() for message in self.cluster.messages(_TOPIC, _QUEUE))
        return [int(body) if body.isdecimal() else -1 for body in bodies if body != "foreign"]

    def judge(self) -> list[str]:
        rows = self.stored_rows()
        found = [] if rows == list(range(len(rows))) else [f"rows {rows} are stored"]
        if len(rows) < self.returned:
            found.append(f"{len(rows)} rows are stored, commits of {self.returned} have returned")
        return found

    def history(self) -> list[str]:
        return [*self.ended, str(self.stored_rows())]

    async def start(self) -> None:
        """Start a driver, as a supervisor starts a process."""
        await self.start_on(self.checkpoint)

    async def start_on(self, checkpoint: _Checkpoint) -> None:
        config = ProducerConfig(
            name_server=self.cluster.name_server, request_timeout=1.0, max_batch_bytes=self._request_bytes()
        )
        producer = Producer(config)
        await producer.start()
        driver = _Driver(producer, checkpoint, self.chance.uniform(0.0, 8.0))
        driver.may_run.set()
        driver.task = asyncio.create_task(self._run(driver))
        self.writers.append(driver)  # type: ignore[arg-type]

    def _request_bytes(self) -> int:
        return self.chance.choice((150, 400, 10_000))  # one row, some, or all

    async def _run(self, driver: _Driver) -> None:
        _DRIVER.set(driver)
        try:
            while driver.checkpoint.begin(driver.checkpoint.done) < _ROWS:
                await self._run_batch(driver, driver.checkpoint.done)
        except (RocketMQError, _ConcurrentUpdateError) as error:
            self.ended.append(f"{type(error).__name__}: {error}")
            self.errors += isinstance(error, ExactAppendError)

    async def _run_batch(self, driver: _Driver, batch: int) -> None:
        checkpoint = driver.checkpoint
        begin = checkpoint.begin(batch)
        if len(checkpoint.ends) <= batch:
            checkpoint.plan(batch, min(_ROWS, begin + self.chance.randint(0, _MOST_ROWS)))
        rows = range(begin, checkpoint.ends[batch])
        ranges = await self._stage(driver, rows)
        await self._idle(driver, 20.0)
        writes = _Writes(
            driver.producer, topic=_TOPIC, staging_topic=_STAGING, writer="w", settle_seconds=_SETTLE
        )
        async with writes:  # one process a commit
            await writes.commit(batch, ranges, digest=sum(hash((row, "row")) for row in rows) % (1 << 128))
        self.returned, self.errors = max(self.returned, rows.stop), 0
        await self._idle(driver, 4.0)  # it may die before its checkpoint
        checkpoint.finish(batch)
        self.older.append(deepcopy(checkpoint))
        await self._idle(driver, 20.0)

    async def _idle(self, driver: _Driver, most: float) -> None:
        await asyncio.sleep(self.chance.uniform(0.0, most))
        await driver.may_run.wait()

    async def _stage(self, driver: _Driver, rows: range) -> list[QueueRange]:
        """Stage the rows of an attempt, and some of a task that failed."""
        ranges = []
        for row in rows:
            if self.chance.random() < 0.2:
                await driver.producer.send(Message(_STAGING, b"of a failed task"), queue=_STAGED)
            sent = await driver.producer.send(Message(_STAGING, b"%d" % row), queue=_STAGED)
            ranges.append(QueueRange(_STAGED, sent.queue_offset, sent.queue_offset + 1))
        return ranges

    async def close(self, writer: Any) -> None:
        """End a driver as it ends by itself."""
        if writer not in self.writers or writer.task is None:
            return
        self.writers.remove(writer)
        writer.task.cancel()
        await asyncio.gather(writer.task, return_exceptions=True)
        await writer.producer.close()

    async def kill(self, writer: Any) -> None:
        """End a driver as SIGKILL does."""
        if writer not in self.writers:
            return
        self.writers.remove(writer)
        writer.is_killed = True
        writer.task.cancel()
        await asyncio.gather(writer.task, return_exceptions=True)
        await writer.producer.close()
        await writer.producer.close()


def _an_older(trouble: Trouble, world: _StagedWorld) -> _Checkpoint:
    """Return a copy of a checkpoint, of now or of an earlier moment; the newest plan may be lost."""
    world.may_stop = True
    copies = [*world.older, world.checkpoint][-4:]
    checkpoint = deepcopy(copies[int(trouble.number * len(copies))])
    if trouble.other < 0.5:
        del checkpoint.ends[checkpoint.done :]
    return checkpoint


async def _restore(trouble: Trouble, world: Any) -> None:
    """Replace the checkpoint by an older copy; its drivers have ended."""
    for driver in [*world.writers]:
        await world.kill(driver)
    world.checkpoint = _an_older(trouble, world)


async def _copied(trouble: Trouble, world: Any) -> None:
    """Start a driver on a checkpoint of its own, which is a copy."""
    await world.start_on(_an_older(trouble, world))


async def _forget(trouble: Trouble, world: Any) -> None:
    """Lose the last decisions, as a broker does of which a replica without them takes over."""
    end = len(world.cluster.messages(_DECISIONS, _DECIDED))
    world.may_stop = True
    world.cluster.end_at(_DECIDED, max(0, end - 1 - int(3 * trouble.number)))
    if trouble.other < 0.5 and world.writers:
        await world.kill(world.writers[0])


STAGED_KINDS: Kinds = {
    "the checkpoint is restored": _restore,
    "a driver starts on a copy of the checkpoint": _copied,
    "decisions are lost": _forget,
}


def simulate_staged(seed: int, kinds: Kinds | None = None) -> Result:
    """Run once; the topic must have the first rows of the source, each once and in order."""
    decide = WriterDecisions.decide

    async def paused_decide(decisions: WriterDecisions, wanted: BatchDecision) -> BatchDecision:
        await _pass_time()
        decided = await decide(decisions, wanted)
        await _pass_time()
        return decided

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CopyLane, "_await_turn", _wait_for_driver)
        patch.setattr(WriterDecisions, "decide", paused_decide)
        return simulate_exact(seed, _StagedWorld, kinds or {**KINDS, **STAGED_KINDS})
