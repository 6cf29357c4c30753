"""One run of staged writes by its seed: drivers that die, are paused and are two, as those of Spark.

Micro-batches 0, 1, 2, ... are committed by one driver after the other. Each attempt of a micro-batch stages
rows of its own, so at the end the topic must have all rows of one attempt of each, once and in their order.
"""

import asyncio
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from rmqtools import Message, MessageQueue, ProducerConfig, QueueRange
from rmqtools.aio import ExactAppender, Producer, StagedWrites
from rmqtools.engine.exact.copy_lane import CopyLane
from rmqtools.errors import RocketMQError
from tools.measure.sim.exact import World, simulate_exact
from tools.measure.sim.run import Result

_TOPIC, _STAGING = "appended", "staging"
_QUEUE, _STAGED = MessageQueue(_TOPIC, "broker-a", 0), MessageQueue(_STAGING, "broker-a", 0)
_BATCHES = 10
_SETTLE = 10.0
_DRIVER: "ContextVar[_Driver | None]" = ContextVar("driver", default=None)


@dataclass(eq=False)
class _Driver:
    """A driver: its task, whether it may run, and the appenders that it has open."""

    producer: Producer
    may_run: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    appenders: list[ExactAppender] = field(default_factory=list)
    is_killed: bool = False

    async def pause(self) -> None:
        """Stop as a stopped process does: it renews no lock."""
        self.may_run.clear()
        for appender in self.appenders:
            await appender._background.stop()

    async def go_on(self) -> None:
        """Continue."""
        self.may_run.set()


class _Writes(StagedWrites):
    """Staged writes whose driver may be paused, or killed, where a process may."""

    def _appender(self, opened: AsyncExitStack, queue: MessageQueue) -> ExactAppender:
        driver, own = _DRIVER.get(), AsyncExitStack()
        assert driver is not None
        appender = super()._appender(own, queue)
        driver.appenders.append(appender)
        opened.push_async_callback(_close, driver, appender)
        own.pop_all()
        return appender

    async def _keep(self, *given: Any, **more: Any) -> Any:
        kept = await super()._keep(*given, **more)
        await _wait_for_driver()
        return kept


async def _close(driver: _Driver, appender: ExactAppender) -> None:
    driver.appenders.remove(appender)
    if driver.is_killed:  # its lock stays
        appender._own.close()
        await appender._background.stop()
    else:
        await appender.close()


async def _wait_for_driver(*_: object) -> None:
    driver = _DRIVER.get()
    assert driver is not None
    await driver.may_run.wait()


@dataclass
class _StagedWorld(World):
    """Drivers of one query, and its checkpoint."""

    done: int = 0  # micro-batches in the checkpoint
    attempts: dict[int, list[list[str]]] = field(default_factory=dict)  # by micro-batch: rows

    def create_topics(self) -> None:
        for topic in (_TOPIC, _STAGING, f"{_STAGING}-decisions", f"{_STAGING}-decided"):
            self.cluster.create_topic(topic, queues=1, broker_names=["broker-a"])

    def is_finished(self) -> bool:
        return self.done == _BATCHES

    def judge(self) -> list[str]:
        rows: dict[int, list[str]] = {batch: [] for batch in range(_BATCHES)}
        for message in self.cluster.messages(_TOPIC, _QUEUE):
            if (text := message.body.decode()) != "foreign":
                rows[int(text.split("/")[0])].append(text)
        return [
            f"micro-batch {batch}: {found} are stored, want one of {self.attempts.get(batch)}"
            for batch, found in rows.items()
            if found not in self.attempts.get(batch, [])
        ]

    def history(self) -> list[str]:
        return [*self.ended, *(message.body.decode() for message in self.cluster.messages(_TOPIC, _QUEUE))]

    async def start(self) -> None:
        """Start a driver, as a supervisor starts a process."""
        config = ProducerConfig(
            name_server=self.cluster.name_server, request_timeout=1.0, max_batch_bytes=self._request_bytes()
        )
        producer = Producer(config)
        await producer.start()
        driver = _Driver(producer)
        driver.may_run.set()
        driver.task = asyncio.create_task(self._commit_all(driver))
        self.writers.append(driver)  # type: ignore[arg-type]

    def _request_bytes(self) -> int:
        return self.chance.choice((150, 400, 10_000))  # one row, some, or all

    async def _commit_all(self, driver: _Driver) -> None:
        _DRIVER.set(driver)
        writes = _Writes(
            driver.producer, topic=_TOPIC, staging_topic=_STAGING, writer="w", settle_seconds=_SETTLE
        )
        try:
            await writes.start()
            while (batch := self.done) < _BATCHES:
                await driver.may_run.wait()
                await writes.commit(str(batch), await self._stage(driver, batch))
                await asyncio.sleep(self.chance.uniform(0.0, 4.0))  # it may die before its checkpoint
                await driver.may_run.wait()
                self.done = max(self.done, batch + 1)
                await asyncio.sleep(self.chance.uniform(0.0, 20.0))
        except RocketMQError as error:
            self.ended.append(f"{type(error).__name__}: {error}")

    async def _stage(self, driver: _Driver, batch: int) -> list[QueueRange]:
        """Stage the rows of an attempt, and some of a task that failed."""
        number = sum(map(len, self.attempts.values()))
        rows = [f"{batch}/{number}/{row}" for row in range(self.chance.randint(0, 6))]
        self.attempts.setdefault(batch, []).append(rows)
        ranges = []
        for row in rows:
            if self.chance.random() < 0.2:
                await driver.producer.send(Message(_STAGING, f"{row} failed".encode()), queue=_STAGED)
            sent = await driver.producer.send(Message(_STAGING, row.encode()), queue=_STAGED)
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
        self.writers.remove(writer)
        writer.is_killed = True
        writer.task.cancel()
        await asyncio.gather(writer.task, return_exceptions=True)
        await writer.producer._client.close()


def simulate_staged(seed: int) -> Result:
    """Run once; the rows of one attempt of each micro-batch must be stored, once and in order."""
    wait, CopyLane._await_turn = CopyLane._await_turn, _wait_for_driver  # type: ignore[method-assign,assignment]
    try:
        return simulate_exact(seed, _StagedWorld)
    finally:
        CopyLane._await_turn = wait  # type: ignore[method-assign]
