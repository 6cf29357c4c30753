"""Stored messages: how a broker keeps a message, and what the body of a pull is made of.

    size:i32 | magic:i32 | body_crc:i32 | queue_id:i32 | flag:i32 | queue_offset:i64 | commit_log_offset:i64
    | sys_flag:i32 | born_timestamp:i64 | born_host | store_timestamp:i64 | store_host | reconsume_times:i32
    | prepared_transaction_offset:i64 | body_length:i32, body | topic_length:i8 (V1) or i16 (V2), topic
    | properties_length:i16, properties

``size`` counts itself; bytes it counts behind the properties are passed over. A host has 8 bytes, or 20
where the sys flag says IPv6.
Source of the rule: MessageDecoder.decode and encode, MessageVersion (Java client). There a message that
cannot be read is null and takes the rest of the buffer with it, and a size that is too small goes unnoticed;
here both are errors.
"""

import struct
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from rmqtools.errors import ProtocolError
from rmqtools.model.message import MessageExt
from rmqtools.model.sys_flag import BORNHOST_V6_FLAG, COMPRESSED_FLAG, STOREHOSTADDRESS_V6_FLAG
from rmqtools.protocol.compression import MAX_BODY_BYTES, CompressionType, compress, decompress
from rmqtools.protocol.hosts import decode_host, encode_host
from rmqtools.protocol.properties import format_properties, parse_properties

MESSAGE_MAGIC_CODE = -626843481  # V1: 0xDAA320A7
MESSAGE_MAGIC_CODE_V2 = -626843477  # V2: 0xDAA320AB, two bytes of topic length
BLANK_MAGIC_CODE = -875286124  # fills the end of a commit log file; never in a pull
MESSAGE_MAGIC_CODE_POSITION = 4
MESSAGE_FLAG_POSITION = 16
QUEUE_OFFSET_POSITION = 20
MESSAGE_PHYSIC_OFFSET_POSITION = 28
SYSFLAG_POSITION = 36
MESSAGE_STORE_TIMESTAMP_POSITION = 56

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_SHORT = struct.Struct(">h")
_V1_TOPIC_LENGTH = struct.Struct(">b")
_TOPIC_LENGTHS = {MESSAGE_MAGIC_CODE: _V1_TOPIC_LENGTH, MESSAGE_MAGIC_CODE_V2: _SHORT}
_CRC_MASK = 0x7FFF_FFFF
_MAX_SHORT = 0x7FFF


class _Fixed(NamedTuple):
    """The fields of fixed width for one of the four forms of two hosts: all, and those decoded at once."""

    whole: struct.Struct
    hot: struct.Struct


def _fixed(born_bytes: int, store_bytes: int) -> _Fixed:
    whole = struct.Struct(f">iiiiiqqiq{born_bytes}sq{store_bytes}siqi")
    return _Fixed(whole, struct.Struct(f">ii4xi4xq8x4x8x{born_bytes}s8x{store_bytes}s4x8xi"))


_FIXED = {
    0: _fixed(8, 8),
    BORNHOST_V6_FLAG: _fixed(20, 8),
    STOREHOSTADDRESS_V6_FLAG: _fixed(8, 20),
    BORNHOST_V6_FLAG | STOREHOSTADDRESS_V6_FLAG: _fixed(20, 20),
}
_V6_FLAGS = BORNHOST_V6_FLAG | STOREHOSTADDRESS_V6_FLAG
_BORN_HOST = 9  # which of them it is
_SMALLEST = _FIXED[0].whole.size + _V1_TOPIC_LENGTH.size + _SHORT.size  # no body, no topic, no properties


def message_starts(data: bytes | memoryview, *, base: int = 0) -> list[int]:
    """Where each message of a pull body begins, by the chain of sizes; nothing else is looked at.

    ``base`` is added to each: where ``data`` itself will begin.

    Raises:
        ProtocolError: a size leads nowhere.
    """
    starts: list[int] = []
    start, end = 0, len(data)
    size_at = _INT.unpack_from
    while start < end:
        size = size_at(data, start)[0] if end - start >= _SMALLEST else 0
        if size < _SMALLEST:
            break
        starts.append(base + start)
        start += size
    if start != end:
        at = starts[-1] - base if start > end else start
        raise ProtocolError(f"pull body of {end} bytes: message of {size} bytes at {at}")
    return starts


def queue_offset_at(data: bytes | memoryview, start: int) -> int:
    """The queue offset of the message that begins at ``start``, one of ``message_starts``."""
    offset: int = _LONG.unpack_from(data, start + QUEUE_OFFSET_POSITION)[0]
    return offset


def decode_messages(
    data: bytes | memoryview,
    *,
    decompress_bodies: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
    broker_name: str = "",
) -> list[MessageExt]:
    """Read all messages of a pull body, which came from the broker of that name.

    Raises:
        ProtocolError: one of them cannot be read; see ``decode_message``.
    """
    return [
        _decode_whole(data, start, decompress_bodies, max_body_bytes, broker_name)
        for start in message_starts(data)
    ]


def decode_message(
    data: bytes | memoryview,
    start: int = 0,
    *,
    decompress_body: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> MessageExt:
    """Read the message that begins at ``start``.

    A decompressed body loses the compressed bit of its sys flag and keeps the type bits; an empty one stays
    as it is. The checksum is not compared: see ``check_body``.

    Raises:
        ProtocolError: no message, cut off, or a body that cannot be decompressed.
    """
    return _decode_whole(data, start, decompress_body, max_body_bytes, "")


def check_body(message: MessageExt, body: bytes) -> bool:
    """Whether ``body``, as it is stored (still compressed), has the checksum the message says."""
    return body_crc(body) == message.body_crc


def body_crc(body: bytes | memoryview) -> int:
    """The checksum a broker stores: CRC-32 without its highest bit."""
    return zlib.crc32(body) & _CRC_MASK


def encode_message(message: MessageExt, *, version: int = MESSAGE_MAGIC_CODE) -> bytes:
    """Write a message as a broker stores it; the size is computed, the checksum where it is 0.

    Raises:
        ValueError: topic or properties are too long for the version, or a host is no address.
    """
    body = _stored_body(message)
    topic, properties = message.topic.encode(), format_properties(message.properties).encode()
    length_form = _TOPIC_LENGTHS[version]
    if len(topic) > _MAX_SHORT >> (8 * (2 - length_form.size)) or len(properties) > _MAX_SHORT:
        raise ValueError(f"topic of {len(topic)} or properties of {len(properties)} bytes are too long")
    rest = (body, length_form.pack(len(topic)), topic, _SHORT.pack(len(properties)), properties)
    form = _FIXED[message.sys_flag & _V6_FLAGS].whole
    fixed = form.pack(
        form.size + sum(map(len, rest)),
        version,
        message.body_crc or body_crc(body),
        message.queue_id,
        message.flag,
        message.queue_offset,
        message.commit_log_offset,
        message.sys_flag,
        message.born_timestamp_ms,
        encode_host(message.born_host),
        message.store_timestamp_ms,
        encode_host(message.store_host),
        message.reconsume_times,
        message.prepared_transaction_offset,
        len(body),
    )
    return b"".join((fixed, *rest))


def _stored_body(message: MessageExt) -> bytes:
    if not message.sys_flag & COMPRESSED_FLAG or not message.body:
        return message.body
    return compress(CompressionType.of_sys_flag(message.sys_flag), message.body)


def _decode_whole(
    data: bytes | memoryview, start: int, decompress_body: bool, max_body_bytes: int, broker_name: str
) -> MessageExt:
    try:
        return _decode(data, start, decompress_body, max_body_bytes, broker_name)
    except struct.error as error:
        raise ProtocolError(f"message at {start} of {len(data)} bytes is cut off: {error}") from error


def _decode(
    data: bytes | memoryview, start: int, decompress_body: bool, max_body_bytes: int, broker_name: str
) -> MessageExt:
    (sys_flag,) = _INT.unpack_from(data, start + SYSFLAG_POSITION)
    form = _FIXED[sys_flag & _V6_FLAGS]
    size, magic, queue_id, queue_offset, born_host, store_host, body_length = form.hot.unpack_from(
        data, start
    )
    length_form = _TOPIC_LENGTHS.get(magic)
    if length_form is None:
        raise ProtocolError(f"message at {start} has the magic number {magic}")
    body_at = start + form.whole.size
    body_end = body_at + max(body_length, 0)
    topic_at = body_end + length_form.size
    topic_end = topic_at + length_form.unpack_from(data, body_end)[0]
    properties_at = topic_end + _SHORT.size
    properties_end = properties_at + max(_SHORT.unpack_from(data, topic_end)[0], 0)
    if topic_end < topic_at or properties_end > min(start + size, len(data)):
        raise ProtocolError(f"message at {start} says {size} bytes and holds {properties_end - start}")
    decode_host(born_host)  # what is no host must be said now
    decode_host(store_host)
    body, topic = bytes(data[body_at:body_end]), bytes(data[topic_at:topic_end])
    if decompress_body and sys_flag & COMPRESSED_FLAG and body:
        body = decompress(CompressionType.of_sys_flag(sys_flag), body, max_bytes=max_body_bytes)
        sys_flag &= ~COMPRESSED_FLAG
    return MessageExt.decoded_later(
        topic.decode("utf-8", "replace"),
        queue_id,
        queue_offset=queue_offset,
        body=body,
        sys_flag=sys_flag,
        broker_name=broker_name,
        undecoded=bytes(data[start:body_at]) + bytes(data[properties_at:properties_end]),
        decode=_decode_later,
    )


def _decode_later(name: str, undecoded: bytes) -> Iterable[tuple[str, Any]]:
    """The field of that name, and those that come with it: of a message without body and topic."""
    (sys_flag,) = _INT.unpack_from(undecoded, SYSFLAG_POSITION)
    form = _FIXED[sys_flag & _V6_FLAGS].whole
    if name == "properties":
        return ((name, parse_properties(undecoded[form.size :].decode("utf-8", "replace"))),)
    fixed = form.unpack_from(undecoded)
    size, _, crc, _, flag, _, log_offset, _, born_ms = fixed[:_BORN_HOST]
    born_host, store_ms, store_host, reconsumed, prepared, _ = fixed[_BORN_HOST:]
    return (
        ("offset_msg_id", (store_host + _LONG.pack(log_offset)).hex().upper()),
        ("commit_log_offset", log_offset),
        ("flag", flag),
        ("born_timestamp_ms", born_ms),
        ("born_host", decode_host(born_host)),
        ("store_timestamp_ms", store_ms),
        ("store_host", decode_host(store_host)),
        ("reconsume_times", reconsumed),
        ("prepared_transaction_offset", prepared),
        ("body_crc", crc),
        ("store_size_bytes", size),
    )
