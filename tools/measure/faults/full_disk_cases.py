"""A broker whose disk is full: it refuses, and it deletes its oldest files."""

import asyncio
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from rmqtools import ClientConfig, Message, MessageQueue, ProducerConfig, QueueRange
from rmqtools.aio import Admin, Client, Producer
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import RocketMQError, SendError
from rmqtools.model.result import SendAttempt
from tests.support.docker_project import DockerProject
from tools.measure.faults.bench import Bench
from tools.measure.faults.checker import check
from tools.measure.faults.figures import Figure, at_most, holds
from tools.measure.faults.full_disk import NAME, full_disk_broker
from tools.measure.faults.run import Outcome

_BODY_BYTES, _BODIES = 256 * 1024, 1200  # half of them would need 150 MB
_AVOID_SECONDS = 10.0  # policy.fault.LatencyTable: what a failed attempt counts as


@dataclass(frozen=True)
class _Try:
    """One attempt, and when it was over."""

    at: float
    attempt: SendAttempt

    @property
    def is_on_full(self) -> bool:
        return self.attempt.queue.broker_name == NAME

    @property
    def is_stored(self) -> bool:
        return self.attempt.error is None


async def full_disk(bench: Bench) -> Outcome:
    """Fill a topic on two brokers, one of which has 100 MB, with fault avoidance on; then read it."""
    context = full_disk_broker(DockerProject())
    await asyncio.to_thread(context.__enter__)
    try:
        return await _fill_and_read(bench)
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


async def _fill_and_read(bench: Bench) -> Outcome:
    topic = f"faults-{uuid.uuid4().hex[:12]}"
    config = ClientConfig(name_server=bench.site.name_server, request_timeout=10.0)
    async with Client(config) as client, Admin(client) as admin:
        await admin.create_topic(
            topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a", NAME]
        )
        tries, failed = await _send_all(bench, topic)
        queue = MessageQueue(topic, NAME, 0)
        acked = sum(one.is_on_full and one.is_stored for one in tries)
        begin, end = await admin.min_offset(queue), await admin.max_offset(queue)
        kept = await _read(client, QueueRange(queue, begin, end))
        whole = await _read(client, QueueRange(queue, 0, max(end, 1)))
    figures: list[Figure] = [
        holds("the disk was full", any(one.is_on_full and not one.is_stored for one in tries)),
        at_most("failed sends", failed, 0),
        at_most("sent to it again while avoided", _sent_while_avoided(tries), 0),
        holds("acknowledged by it, left at last", True, f"{acked}, [{begin}, {end})"),
        holds("what is left is read exactly", kept == f"{list(range(begin, end))}", kept[-60:]),
        holds("the error names what is gone", begin == 0 or f"[0, {begin})" in whole, whole[:120]),
    ]
    return Outcome(check(()), figures)


async def _send_all(bench: Bench, topic: str) -> tuple[list[_Try], int]:
    """Every attempt of all sends, and how many sends failed."""
    config = ProducerConfig(
        name_server=bench.site.name_server,
        send_timeout=10.0,
        send_latency_fault_enable=True,
        compression="none",
    )
    tries: list[_Try] = []
    failed = 0
    async with Producer(config) as producer:
        for _ in range(_BODIES):
            try:
                attempts = (await producer.send(Message(topic, os.urandom(_BODY_BYTES)))).attempts
            except SendError as error:
                attempts, failed = error.attempts, failed + 1
            tries += [_Try(SYSTEM_CLOCK.monotonic(), attempt) for attempt in attempts]
    return tries, failed


def _sent_while_avoided(tries: Sequence[_Try]) -> int:
    """Count attempts on the full broker within the time that it is avoided after its first error."""
    first = next((one.at for one in tries if one.is_on_full and not one.is_stored), float("inf"))
    return sum(one.is_on_full and first < one.at < first + _AVOID_SECONDS - 0.5 for one in tries)


async def _read(client: Client, range_: QueueRange) -> str:
    """Read a range: the offsets as text, or the error."""
    offsets: list[int] = []
    try:
        async for messages in client.read_messages(range_):
            offsets += [message.queue_offset for message in messages]
    except RocketMQError as error:
        return f"{type(error).__name__}: {error}"
    return f"{offsets}"
