"""Stored messages of every kind, written byte by byte, and blocks of them."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from rmqtools import MessageBlock, MessageQueue
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.compression import CompressionType, compress
from rmqtools.protocol.message_batch import encode_batch_message

V1 = 0xDAA320A7
V2 = 0xDAA320AB
COMPRESSED = int(MessageSysFlag.COMPRESSED_FLAG)
BORN_V6 = int(MessageSysFlag.BORNHOST_V6_FLAG)
STORE_V6 = int(MessageSysFlag.STOREHOSTADDRESS_V6_FLAG)
INNER_BATCH = int(MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG)
QUEUE = MessageQueue("Orders", "broker-a", 3)


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
        body = self.body
        if self.sys_flag & COMPRESSED and body:
            body = compress(CompressionType.of_sys_flag(self.sys_flag), body)
        head = struct.pack(
            ">IiiiqqiQ",
            self.magic,
            0,
            3,
            self.flag,
            self.queue_offset,
            self.commit_log_offset,
            self.sys_flag,
            self.born_timestamp_ms & (2**64 - 1),
        )
        parts = (
            head,
            _host(self.sys_flag & BORN_V6, self.born_port),
            struct.pack(">q", self.store_timestamp_ms),
            _host(self.sys_flag & STORE_V6, self.store_port),
            struct.pack(">iqi", self.reconsume_times, 0, len(body)),
            body,
            struct.pack(">B" if self.magic == V1 else ">H", len(self.topic)),
            self.topic,
            struct.pack(">H", len(self.properties)),
            self.properties,
        )
        rest = b"".join(parts)
        return struct.pack(">i", len(rest) + 4) + rest


def inner_batch(bodies: Sequence[bytes], *, queue_offset: int = 7, sys_flag: int = 0) -> Stored:
    """A batch that the broker keeps as one message."""
    parts = [
        encode_batch_message(number, body, properties_of(colour=f"c{number}"))
        for number, body in enumerate(bodies)
    ]
    return Stored(
        body=b"".join(parts),
        properties=properties_of(INNER_NUM=str(len(parts)), UNIQ_KEY="7F01"),
        sys_flag=INNER_BATCH | sys_flag,
        queue_offset=queue_offset,
    )


def _host(ipv6: int, port: int) -> bytes:
    address = bytes.fromhex("20010db8000000000000000000000001") if ipv6 else bytes([192, 168, 0, port % 200])
    return address + struct.pack(">i", port)


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
