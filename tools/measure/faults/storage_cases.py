"""Messages that are not there any more: expired during a read, or gone with the broker's disk."""

import asyncio
import os
import uuid
from typing import Any

from rmqtools import ClientConfig, Message, MessageQueue, ProducerConfig, QueueRange
from rmqtools.aio import Admin, Client, Producer
from rmqtools.errors import DataLossError
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand
from tools.measure.faults.bench import Bench
from tools.measure.faults.checker import check
from tools.measure.faults.figures import Figure, holds
from tools.measure.faults.run import Outcome

_BROKER = "broker-b"
_BODY_BYTES, _BODIES = 1024 * 1024, 140  # more than two files of the commit log
_FILE_BODIES = 64  # at most, of a file of the commit log of 64 MiB
_EXPIRY_SECONDS = 60.0  # the broker looks every 10 s, and deletes file after file


async def expired_messages(bench: Bench) -> Outcome:
    """Delete the first messages of a range while it is read; a range reaches behind the queue's end."""
    config = ClientConfig(name_server=bench.site.name_server, request_timeout=10.0)
    async with Client(config) as client, Admin(client) as admin:
        queue = await _fill(bench, admin, bodies=_BODIES, body_bytes=_BODY_BYTES)
        whole = await _read(client, QueueRange(queue, 0, _BODIES))
        begun = client.read_messages(QueueRange(queue, 0, _BODIES), max_messages=1)
        first = await anext(begun)
        begin = await _expire(client, admin, queue)
        read = [message.queue_offset for message in first]
        going_on = await _go_on(begun, read)
        from_start = await _read(client, QueueRange(queue, 0, _BODIES))
        kept = await _read(client, QueueRange(queue, begin, _BODIES))
        behind = await _read(client, QueueRange(queue, begin, _BODIES + 10))
    exact = read == list(range(read[-1] + 1))
    figures = [
        holds("the range is read exactly before", whole == _offsets(0, _BODIES)),
        holds("a read that had begun: exact up to its error", exact and going_on != "", going_on[:120]),
        holds("expired: the error names them", f"[0, {begin})" in from_start, from_start[:120]),
        holds("what is left is read exactly", kept == _offsets(begin, _BODIES), kept[:120]),
        holds("behind the end: the error names it", f"[{_BODIES}, {_BODIES + 10})" in behind, behind[:120]),
    ]
    return Outcome(check(()), figures)


async def empty_broker(bench: Bench) -> Outcome:
    """Bring a broker back without its disk: its offsets begin at 0 again."""
    config = ClientConfig(name_server=bench.site.name_server, request_timeout=10.0)
    async with Client(config) as client, Admin(client) as admin:
        queue = await _fill(bench, admin, bodies=100, body_bytes=100)
        await asyncio.to_thread(bench.site.renew, _BROKER)
        await _fill(bench, admin, bodies=20, body_bytes=100, topic=queue.topic)
        end = await admin.max_offset(queue)
        checkpoint = await _read(client, QueueRange(queue, 100, 120))
        new = await _read(client, QueueRange(queue, 0, end))
    figures: list[Figure] = [
        holds("a checkpoint behind the end fails", "cannot be read" in checkpoint, checkpoint[:120]),
        holds("the new messages can be read", new == _offsets(0, 20), new[:60]),
    ]
    return Outcome(check(()), figures)


def _offsets(begin: int, end: int) -> str:
    return f"{list(range(begin, end))}"


async def _fill(
    bench: Bench, admin: Admin, *, bodies: int, body_bytes: int, topic: str | None = None
) -> MessageQueue:
    """Make a topic with one queue on one broker, and messages in it."""
    topic = topic or f"faults-{uuid.uuid4().hex[:12]}"
    await admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, broker_names=[_BROKER])
    config = ProducerConfig(name_server=bench.site.name_server, send_timeout=20.0, compression="none")
    async with Producer(config) as producer:
        for _ in range(bodies):
            result = await producer.send(Message(topic, os.urandom(body_bytes)))
    await admin.await_readable({result.queue: result.queue_offset + 1}, timeout=30)
    return result.queue


async def _expire(client: Client, admin: Admin, queue: MessageQueue) -> int:
    """Let the broker delete all files but the last; returns the queue's first offset then."""
    addr = client._client.routes.master_addr(queue.broker_name)
    await admin.update_broker_config(addr, {"fileReservedTime": "0"})
    try:
        await client._client.remoting.invoke_ok(
            addr, RemotingCommand(code=RequestCode.DELETE_EXPIRED_COMMITLOG)
        )
        async with asyncio.timeout(_EXPIRY_SECONDS):
            while _BODIES - (begin := await admin.min_offset(queue)) > _FILE_BODIES:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
    finally:
        await admin.update_broker_config(addr, {"fileReservedTime": "72"})
    return begin


async def _read(client: Client, range_: QueueRange) -> str:
    """Read a range: the offsets as text, or the error."""
    offsets: list[int] = []
    try:
        async for messages in client.read_messages(range_):
            offsets += [message.queue_offset for message in messages]
    except DataLossError as error:
        return str(error)
    return f"{offsets}"


async def _go_on(reading: Any, read: list[int]) -> str:
    try:
        async for messages in reading:
            read += [message.queue_offset for message in messages]
    except DataLossError as error:
        return str(error)
    return "to its end" if read[-1] == _BODIES - 1 else ""
