"""Bodies that grow, and pops with too many messages."""

import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import zstandard

from rmqtools import (
    Client,
    ClientConfig,
    MessageExt,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.arrow import read_range
from rmqtools.model.group import MessageQueueAssignment, MessageRequestMode, QueryAssignmentResponseBody
from rmqtools.model.queue import QueueRange
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.protocol.messages.compression import CompressionType
from rmqtools.protocol.wire.body_codec import format_body
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster, RequestCode, encode_stored, stored_message
from rmqtools.testing.fake.messages import encode_with_body
from tools.measure.hostile.case import FIRST, MIB, QUEUE, TOPIC, Attack, ended

_COMPRESSED = {kind: COMPRESSED_FLAG | kind.sys_flag for kind in (CompressionType.ZLIB, CompressionType.ZSTD)}


def bomb(kind: CompressionType, plain_bytes: int) -> bytes:
    """Zeros, compressed."""
    if kind is CompressionType.ZSTD:
        compressor = zstandard.ZstdCompressor(level=1, write_content_size=False).compressobj()
        parts = [compressor.compress(bytes(MIB)) for _ in range(plain_bytes // MIB)]
        return b"".join(parts) + compressor.flush()
    packer = zlib.compressobj(9)
    return b"".join([packer.compress(bytes(MIB)) for _ in range(plain_bytes // MIB)]) + packer.flush()


def bombs(
    count: int, kind: CompressionType, plain_bytes: int, read: Callable[[FakeCluster, int], str]
) -> Callable[[FakeCluster], Attack]:
    """Answer a pull with bodies that grow, and read it."""

    def prepare(cluster: FakeCluster) -> Attack:
        body = bomb(kind, plain_bytes)
        message = stored_message(TOPIC, body=body, sys_flag=_COMPRESSED[kind])
        stored = b"".join(encode_with_body(replace(message, queue_offset=number)) for number in range(count))

        def answer(request: RemotingCommand) -> RemotingCommand:
            offset = int(request.ext_fields["queueOffset"] or 0)
            fields = {
                "suggestWhichBrokerId": "0",
                "nextBeginOffset": str(max(count, offset)),
                "minOffset": "0",
                "maxOffset": str(count),
            }
            if offset >= count:
                return response(19, 0, ext_fields=fields)
            each = len(stored) // count
            return response(0, 0, ext_fields=fields, body=stored[offset * each :])

        cluster.fault(code=RequestCode.PULL_MESSAGE, topic=TOPIC, times=None, answer=answer)
        cluster.fault(code=RequestCode.LITE_PULL_MESSAGE, topic=TOPIC, times=None, answer=answer)
        return lambda: read(cluster, count)

    return prepare


def read_messages(cluster: FakeCluster, count: int) -> str:
    """Read a range of messages."""
    with Client(ClientConfig(name_server=cluster.name_server)) as client:

        def read() -> str:
            sizes = [len(m.body) for part in client.read_messages(QueueRange(QUEUE, 0, count)) for m in part]
            return f"{len(sizes)} messages of {sum(sizes)} bytes"

        return ended(read)


def read_arrow(cluster: FakeCluster, count: int) -> str:
    """Read the same range into Arrow batches."""
    with Client(ClientConfig(name_server=cluster.name_server)) as client:

        def read() -> str:
            rows = size = 0
            for batch in read_range(client, QueueRange(QUEUE, 0, count)):
                rows += batch.num_rows
                size += sum(len(body.as_buffer()) for body in batch.column("body"))
            return f"{rows} messages of {size} bytes"

        return ended(read)


def push(cluster: FakeCluster, count: int) -> str:
    """Give a listener all of them, or send them back."""
    seen: list[int] = []
    over = threading.Event()

    def listen(messages: Sequence[MessageExt], _: object) -> None:
        seen.extend(len(message.body) for message in messages)
        if len(seen) == count:
            over.set()

    back = cluster.fault(code=RequestCode.CONSUMER_SEND_MSG_BACK, times=None)
    config = PushConsumerConfig(
        name_server=cluster.name_server, group="g", consume_from=FIRST, consume_threads=1
    )
    consumer = PushConsumer(config)
    consumer.subscribe(TOPIC, listen)
    with consumer:
        deadline = time.monotonic() + 60
        while not over.wait(0.02) and back.fired() < count and time.monotonic() < deadline:
            pass
    return f"{len(seen)} messages of {sum(seen)} bytes, {back.fired()} sent back"


def poll(cluster: FakeCluster, count: int) -> str:
    """Poll until all messages are there or a minute is over."""
    config = PullConsumerConfig(name_server=cluster.name_server, group="g", consume_from=FIRST)
    with PullConsumer(config) as consumer:
        consumer.subscribe(TOPIC)
        sizes: list[int] = []
        deadline = time.monotonic() + 60
        while len(sizes) < count and time.monotonic() < deadline:
            sizes += [len(message.body) for message in consumer.poll(timeout=1, max_messages=1)]
        return f"{len(sizes)} messages of {sum(sizes)} bytes"


def popped(count: int) -> RemotingCommand:
    """Return what a broker answers to a pop."""
    offsets = ",".join(map(str, range(count)))
    fields = {
        "popTime": "1700000000000",
        "invisibleTime": "60000",
        "reviveQid": "3",
        "restNum": "0",
        "startOffsetInfo": "0 0 0",
        "msgOffsetInfo": f"0 0 {offsets}",
    }
    body = encode_stored(stored_message(TOPIC, number, body=b"body") for number in range(count))
    return response(0, 0, ext_fields=fields, body=body)


def pop(cluster: FakeCluster) -> Attack:
    """Answer a pop with 20,000 messages, the next one with one."""
    share = MessageQueueAssignment(message_queue=QUEUE, mode=MessageRequestMode.POP)
    body = format_body(QueryAssignmentResponseBody(message_queue_assignments=(share,)))
    cluster.fault(code=RequestCode.QUERY_ASSIGNMENT, times=None, answer=response(0, 0, body=body))
    cluster.fault(code=RequestCode.POP_MESSAGE, answer=popped(20_000))
    cluster.fault(code=RequestCode.POP_MESSAGE, answer=popped(1))
    cluster.fault(code=RequestCode.POP_MESSAGE, times=None, answer=None)
    acknowledged = cluster.fault(code=RequestCode.ACK_MESSAGE, times=None, answer=response(0, 0))
    config = PushConsumerConfig(
        name_server=cluster.name_server, group="g", client_rebalance=False, delay_after_error=0.1
    )
    consumer = PushConsumer(config)
    consumer.subscribe(TOPIC, lambda *_: None)

    def attack() -> str:
        with consumer:
            deadline = time.monotonic() + 60
            while not acknowledged.fired() and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.2)
        return f"{acknowledged.fired()} acknowledged"

    return attack
