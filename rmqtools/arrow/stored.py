"""Finds the plain messages of a block, and the positions of their parts.

A stored message with IPv4 hosts (big-endian):

     0 total size:i32     4 magic:i32           8 body crc:i32      12 queue id:i32      16 flag:i32
    20 queue offset:i64  28 commit log offset:i64                   36 sys flag:i32
    40 born time:i64     48 born address:4, port:i32
    56 store time:i64    64 store address:4, port:i32               72 reconsume times:i32
    76 prepared transaction offset:i64
    84 body length:i32 | body | topic length:u8 | topic | properties length:i16 | properties

*Plain* means: exactly this form, uncompressed unless bodies are not read, every length consistent with the
total size. All other messages (IPv6 hosts, the second magic with its two-byte topic length, compressed
bodies, inner batches, broken bytes) are left to
:func:`rmqtools.protocol.messages.stored.decode_message`, which reads every form.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rmqtools.arrow.spans import Bytes, Mask, Positions, Spans, cut_fixed

MAGIC_V1: Final = -626843481  # 0xDAA320A7
COMPRESSED: Final = 0x01
_NOT_PLAIN: Final = 0x10 | 0x20 | 0x80  # IPv6 born host, IPv6 store host, inner batch
_LONGEST_TOPIC: Final = 127  # the length is a signed byte in Java
_NO_PORT: Final = np.uint64(0xFFFF_0000)  # bits of a host that no valid port sets
_HEAD: Final = np.dtype(
    [
        ("size", ">i4"),
        ("magic", ">i4"),
        ("body_crc", ">i4"),
        ("queue_id", ">i4"),
        ("flag", ">i4"),
        ("queue_offset", ">i8"),
        ("commit_log_offset", "V8"),
        ("sys_flag", ">i4"),
        ("born_timestamp", ">i8"),
        ("born_host", ">u8"),  # address and port
        ("store_timestamp", ">i8"),
        ("store_host", ">u8"),
        ("reconsume_times", ">i4"),
        ("prepared_offset", "V8"),
        ("body_length", ">i4"),
    ]
)
HEAD_BYTES: Final = _HEAD.itemsize
BODY_LENGTH_POSITION: Final = HEAD_BYTES - 4
LENGTHS: Final = struct.Struct(">i32xi44xi")  # of a head: total size, sys flag, body length
SHORTEST: Final = HEAD_BYTES + 3  # no body, no topic, no properties: three bytes of lengths


@dataclass(frozen=True, slots=True)
class PlainMessages:
    """The plain messages of a block: their rows, their fixed fields, the positions of the rest."""

    rows: Positions
    head: npt.NDArray[Any]
    body: Spans
    topic: Spans
    properties: Spans

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, keep: Mask) -> "PlainMessages":
        """Return the messages for which ``keep`` is true."""
        return PlainMessages(
            self.rows[keep],
            self.head[keep],
            self.body.select(keep),
            self.topic.select(keep),
            self.properties.select(keep),
        )


def find_plain(data: Bytes, starts: Positions, *, with_bodies: bool = True) -> PlainMessages:
    """Return the plain messages among those that begin at ``starts``; reads nothing outside ``data``.

    Without bodies, messages with a compressed body count as plain.
    """
    rows = np.flatnonzero((starts >= 0) & (starts + SHORTEST <= data.size))
    begin = starts[rows]
    head = cut_fixed(data, begin, _HEAD.itemsize).view(_HEAD)
    end = begin + head["size"]
    not_plain = _NOT_PLAIN | COMPRESSED if with_bodies else _NOT_PLAIN
    plain = _has_plain_head(head, not_plain) & (end <= data.size)

    body_begin = begin + _HEAD.itemsize
    body_end = body_begin + head["body_length"]
    plain &= body_end + 3 <= end
    topic_begin = np.where(plain, body_end, 0) + 1
    topic_length = data[topic_begin - 1]
    topic_end = topic_begin + topic_length
    plain &= (topic_length <= _LONGEST_TOPIC) & (topic_end + 2 <= end)
    length_at = np.where(plain, topic_end, 0)
    properties_begin = length_at + 2
    properties_length = (data[length_at].astype(np.int64) << 8) | data[length_at + 1]
    plain &= (properties_length <= 0x7FFF) & (properties_begin + properties_length == end)

    found = PlainMessages(
        rows,
        head,
        Spans(body_begin, body_end),
        Spans(topic_begin, topic_end),
        Spans(properties_begin, end),
    )
    return found if plain.all() else found.select(plain)


def _has_plain_head(head: npt.NDArray[Any], not_plain: int) -> Mask:
    plain: Mask = (
        (head["magic"] == MAGIC_V1)
        & (head["sys_flag"] & not_plain == 0)
        & (head["body_length"] >= 0)
        & ((head["born_host"] | head["store_host"]) & _NO_PORT == 0)
    )
    return plain
