"""Twenty minutes of producing and consuming: ``make soak``; ``python -m tools.measure.faults.soak MINUTES``.

Two push consumers of one group stay; a third joins and leaves every 30 s. Of 10,000 messages one has a body
that cannot be decompressed: its listener fails, and it comes again later. All clients are in
this process. Measured is how its memory grows once warm, and whether a socket, thread or task is left.
"""

import asyncio
import sys
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from rmqtools import (
    ClientConfig,
    ConsumeContext,
    ConsumeFromWhere,
    Message,
    MessageExt,
    MessageQueue,
    ProducerConfig,
    PushConsumerConfig,
)
from rmqtools.aio import Admin, Producer, PushConsumer
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster import LocalCluster
from tests.support.raw_sends import corrupt_message
from tools.measure.faults.figures import Figure, at_most, unmet
from tools.measure.faults.held import Held

_MINUTES = 20.0
_BATCH, _BATCHES_PER_SECOND = 100, 5
_MOST_MESSAGES = 10_000_000
_POISON_EVERY = 10_000
_MEMBER_SECONDS = 30.0
_SAMPLE_SECONDS = 1.0
_WARM_SHARE = 0.25
"""Of the run; memory is not judged before."""
_SLOPE_MIB_PER_MINUTE = 1.0
_DRAIN_SECONDS = 60.0


class Soak:
    """Running clients and their counts."""

    def __init__(self, name_server: str, topic: str) -> None:
        self._name_server = name_server
        self._topic = topic
        self.sent = 0
        self.poisoned = 0
        self.joined = 0
        self._heard = bytearray(_MOST_MESSAGES)  # a set of them would grow with the run
        self.samples: list[tuple[float, float]] = []

    async def run(self, seconds: float) -> None:
        """All of it, for so long; returns when everything sent was heard, or a minute later."""
        self._end = SYSTEM_CLOCK.monotonic() + seconds
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(self._member())
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send())
                group.create_task(self._come_and_go())
                group.create_task(self._sample())
            deadline = SYSTEM_CLOCK.monotonic() + _DRAIN_SECONDS
            while self.heard < self.sent and SYSTEM_CLOCK.monotonic() < deadline:  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    @property
    def heard(self) -> int:
        """Return how many of the messages came to a listener at least once."""
        return self._heard.count(1)

    def slope(self) -> float:
        """MiB a minute by which the memory grew once warm: the least squares' line through the samples."""
        warm = self.samples[int(len(self.samples) * _WARM_SHARE) :]
        middle_at = sum(at for at, _ in warm) / len(warm)
        middle = sum(size for _, size in warm) / len(warm)
        rise = sum((at - middle_at) * (size - middle) for at, size in warm)
        return 60 * rise / sum((at - middle_at) ** 2 for at, _ in warm)

    def _member(self) -> PushConsumer:
        config = PushConsumerConfig(
            name_server=self._name_server,
            group="soak",
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            consume_message_batch_max_size=32,
        )
        consumer = PushConsumer(config)
        consumer.subscribe(self._topic, self._listen)
        return consumer

    async def _listen(self, messages: list[MessageExt], _: ConsumeContext) -> None:
        bodies = [message.body for message in messages]  # a poisoned one raises here
        for body in bodies:
            self._heard[int(body.split(b" ", 1)[0])] = 1

    async def _send(self) -> None:
        config = ProducerConfig(name_server=self._name_server, send_timeout=10.0)
        async with Producer(config) as producer, Admin(config) as admin:
            queues = await admin.fetch_publish_queues(self._topic)
            while self._is_on():
                began = SYSTEM_CLOCK.monotonic()
                numbers = range(self.sent, self.sent + _BATCH)
                await producer.send_many([Message(self._topic, b"%d " % n + bytes(300)) for n in numbers])
                self.sent += _BATCH
                if self.sent % _POISON_EVERY == 0:
                    await self._poison(admin, queues)
                await asyncio.sleep(max(0.0, began + 1 / _BATCHES_PER_SECOND - SYSTEM_CLOCK.monotonic()))

    async def _poison(self, admin: Admin, queues: Sequence[MessageQueue]) -> None:
        queue = queues[self.poisoned % len(queues)]
        core = admin._client
        addr = core.routes.master_addr(queue.broker_name)
        await core.remoting.invoke_ok(addr, corrupt_message(queue, b"not compressed"))
        self.poisoned += 1

    async def _come_and_go(self) -> None:
        while self._is_on():
            async with self._member():
                self.joined += 1
                await asyncio.sleep(min(_MEMBER_SECONDS, max(0.0, self._end - SYSTEM_CLOCK.monotonic())))
            await asyncio.sleep(min(_MEMBER_SECONDS, max(0.0, self._end - SYSTEM_CLOCK.monotonic())))

    async def _sample(self) -> None:
        while self._is_on():
            self.samples.append((SYSTEM_CLOCK.monotonic(), _resident_mib()))
            await asyncio.sleep(_SAMPLE_SECONDS)

    def _is_on(self) -> bool:
        return SYSTEM_CLOCK.monotonic() < self._end


async def soak(name_server: str, seconds: float) -> list[Figure]:
    """Run it, and judge it."""
    topic = f"soak-{uuid.uuid4().hex[:8]}"
    async with Admin(ClientConfig(name_server=name_server)) as admin:
        await admin.create_topic(topic, read_queue_nums=4, write_queue_nums=4)
    before = Held.now()
    run = Soak(name_server, topic)
    await run.run(seconds)
    held = await Held.settled(before)
    first, last = run.samples[int(len(run.samples) * _WARM_SHARE)][1], run.samples[-1][1]
    print(
        f"{seconds / 60:.1f} min: {run.sent} sent, {run.poisoned} poisoned, {run.joined} members joined, "
        f"RSS {first:.1f} MiB when warm, {last:.1f} MiB at the end"
    )
    return [
        at_most("never heard", run.sent - run.heard, 0),
        at_most("RSS MiB a minute", run.slope(), _SLOPE_MIB_PER_MINUTE),
        *held.figures_since(before),
    ]


def _resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1024**2


def main(arguments: Sequence[str]) -> int:
    """Run on a cluster of its own; 1 if a figure is not met."""
    minutes = float(arguments[0]) if arguments else _MINUTES
    with LocalCluster(brokers=2) as cluster:
        figures = asyncio.run(soak(cluster.name_server, 60 * minutes))
    print("; ".join(map(str, figures)))
    return 1 if unmet(figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
