"""Stored messages of every kind, their topic and properties as raw bytes, and blocks of them."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from rmqtools import MessageBlock, MessageQueue
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.messages.batch import encode_batch
from rmqtools.protocol.messages.stored import encode_message
from rmqtools.testing import stored_message

V1 = 0xDAA320A7
V2 = 0xDAA320AB
COMPRESSED = int(MessageSysFlag.COMPRESSED_FLAG)
BORN_V6 = int(MessageSysFlag.BORNHOST_V6_FLAG)
STORE_V6 = int(MessageSysFlag.STOREHOSTADDRESS_V6_FLAG)
INNER_BATCH = int(MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG)
QUEUE = MessageQueue("Orders", "broker-a", 3)
_SHORT = struct.Struct(">H")


@dataclass(frozen=True)
class Stored:
    """A stored message; ``properties`` is the raw text. Compressed and IPv6 as the sys flag says."""

    body: bytes = b"body"
    properties: bytes = b""
    topic: bytes = b"Orders"
    magic: int = V1
    sys_flag: int = 0
    flag: int = 0
    queue_offset: int = 7
    commit_log_offset: int = 4711
    born_timestamp_ms: int = 1_700_000_000_123
    store_timestamp_ms: int = 1_700_000_000_456
    born_port: int = 40001
    store_port: int = 10911
    reconsume_times: int = 0

    def encode(self) -> bytes:
        message = stored_message(
            "",
            self.queue_offset,
            body=self.body,
            queue_id=3,
            flag=self.flag,
            sys_flag=self.sys_flag,
            commit_log_offset=self.commit_log_offset,
            born_timestamp_ms=self.born_timestamp_ms,
            born_host=_host(self.sys_flag & BORN_V6, self.born_port),
            store_timestamp_ms=self.store_timestamp_ms,
            store_host=_host(self.sys_flag & STORE_V6, self.store_port),
            reconsume_times=self.reconsume_times,
        )
        length = struct.Struct(">B" if self.magic == V1 else ">H")
        head = encode_message(message)[8:-3]  # between the magic number and the length of the topic
        texts = (length.pack(len(self.topic)), self.topic, _SHORT.pack(len(self.properties)), self.properties)
        rest = b"".join((head, *texts))
        return struct.pack(">iI", len(rest) + 8, self.magic) + rest


def inner_batch(bodies: Sequence[bytes], *, queue_offset: int = 7, sys_flag: int = 0) -> Stored:
    """A batch that the broker keeps as one message."""
    parts = [
        encode_batch([(number, body, properties_of(colour=f"c{number}"))])
        for number, body in enumerate(bodies)
    ]
    return Stored(
        body=b"".join(parts),
        properties=properties_of(INNER_NUM=str(len(parts)), UNIQ_KEY="7F01"),
        sys_flag=INNER_BATCH | sys_flag,
        queue_offset=queue_offset,
    )


def _host(ipv6: int, port: int) -> str:
    return f"[2001:db8::1]:{port}" if ipv6 else f"192.168.0.{port % 200}:{port}"


def block_of(messages: Sequence[Stored], *, before: bytes = b"", queue: MessageQueue = QUEUE) -> MessageBlock:
    """The messages as one block; ``before`` stands in the buffer in front of them."""
    buffer, starts = bytearray(before), []
    for message in messages:
        starts.append(len(buffer))
        buffer += message.encode()
    return MessageBlock(queue, bytes(buffer), starts, 1000)


def properties_of(**properties: str) -> bytes:
    """The text of properties, as a broker stores it."""
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
