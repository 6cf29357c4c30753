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
from typing import NamedTuple

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

_HEAD = struct.Struct(">iiiiiqqiq")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_SHORT = struct.Struct(">h")
_V1_TOPIC_LENGTH = struct.Struct(">b")
_TOPIC_LENGTHS = {MESSAGE_MAGIC_CODE: _V1_TOPIC_LENGTH, MESSAGE_MAGIC_CODE_V2: _SHORT}
_CRC_MASK = 0x7FFF_FFFF
_MAX_SHORT = 0x7FFF


class _Tail(NamedTuple):
    """What follows the head for one of the four ways to hold two hosts."""

    form: struct.Struct
    end: int


def _tail(born_bytes: int, store_bytes: int) -> _Tail:
    form = struct.Struct(f">{born_bytes}sq{store_bytes}siqi")
    return _Tail(form, _HEAD.size + form.size)


_TAILS = {
    0: _tail(8, 8),
    BORNHOST_V6_FLAG: _tail(20, 8),
    STOREHOSTADDRESS_V6_FLAG: _tail(8, 20),
    BORNHOST_V6_FLAG | STOREHOSTADDRESS_V6_FLAG: _tail(20, 20),
}

_SMALLEST = _TAILS[0].end + _V1_TOPIC_LENGTH.size + _SHORT.size  # no body, no topic, no properties


def message_starts(data: bytes | memoryview) -> list[int]:
    """Where each message of a pull body begins, by the chain of sizes; nothing else is looked at.

    Raises:
        ProtocolError: a size leads nowhere.
    """
    starts: list[int] = []
    start, end = 0, len(data)
    while start < end:
        size = _INT.unpack_from(data, start)[0] if end - start >= _INT.size else 0
        if not _SMALLEST <= size <= end - start:
            raise ProtocolError(f"pull body of {end} bytes: message of {size} bytes at {start}")
        starts.append(start)
        start += size
    return starts


def queue_offset_at(data: bytes | memoryview, start: int) -> int:
    """The queue offset of the message that begins at ``start``, one of ``message_starts``."""
    offset: int = _LONG.unpack_from(data, start + QUEUE_OFFSET_POSITION)[0]
    return offset


def decode_messages(
    data: bytes | memoryview, *, decompress_bodies: bool = True, max_body_bytes: int = MAX_BODY_BYTES
) -> list[MessageExt]:
    """Read all messages of a pull body.

    Raises:
        ProtocolError: one of them cannot be read; see ``decode_message``.
    """
    return [
        decode_message(data, start, decompress_body=decompress_bodies, max_body_bytes=max_body_bytes)
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
    try:
        return _decode(data, start, decompress_body, max_body_bytes)
    except struct.error as error:
        raise ProtocolError(f"message at {start} of {len(data)} bytes is cut off: {error}") from error


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
    tail = _encode_tail(message, len(body))
    rest = (body, length_form.pack(len(topic)), topic, _SHORT.pack(len(properties)), properties)
    size = _HEAD.size + len(tail) + sum(map(len, rest))
    head = _HEAD.pack(
        size,
        version,
        message.body_crc or body_crc(body),
        message.queue_id,
        message.flag,
        message.queue_offset,
        message.commit_log_offset,
        message.sys_flag,
        message.born_timestamp_ms,
    )
    return b"".join((head, tail, *rest))


def _stored_body(message: MessageExt) -> bytes:
    if not message.sys_flag & COMPRESSED_FLAG or not message.body:
        return message.body
    return compress(CompressionType.of_sys_flag(message.sys_flag), message.body)


def _encode_tail(message: MessageExt, body_length: int) -> bytes:
    tail = _TAILS[message.sys_flag & (BORNHOST_V6_FLAG | STOREHOSTADDRESS_V6_FLAG)]
    return tail.form.pack(
        encode_host(message.born_host),
        message.store_timestamp_ms,
        encode_host(message.store_host),
        message.reconsume_times,
        message.prepared_transaction_offset,
        body_length,
    )


def _decode(data: bytes | memoryview, start: int, decompress_body: bool, max_body_bytes: int) -> MessageExt:
    size, magic, crc, queue_id, flag, queue_offset, log_offset, sys_flag, born_ms = _HEAD.unpack_from(
        data, start
    )
    length_form = _TOPIC_LENGTHS.get(magic)
    if length_form is None:
        raise ProtocolError(f"message at {start} has the magic number {magic}")
    tail = _TAILS[sys_flag & (BORNHOST_V6_FLAG | STOREHOSTADDRESS_V6_FLAG)]
    born_host, store_ms, store_host, reconsumed, prepared, length = tail.form.unpack_from(
        data, start + _HEAD.size
    )
    body, offset = _cut(data, start + tail.end, max(length, 0))
    (length,) = length_form.unpack_from(data, offset)
    topic, offset = _cut(data, offset + length_form.size, length)
    (length,) = _SHORT.unpack_from(data, offset)
    properties, offset = _cut(data, offset + _SHORT.size, max(length, 0))
    if offset - start > size:
        raise ProtocolError(f"message at {start} says {size} bytes and holds {offset - start}")
    if decompress_body and sys_flag & COMPRESSED_FLAG and body:
        body = decompress(CompressionType.of_sys_flag(sys_flag), body, max_bytes=max_body_bytes)
        sys_flag &= ~COMPRESSED_FLAG
    return MessageExt(
        topic=topic.decode("utf-8", "replace"),
        queue_id=queue_id,
        queue_offset=queue_offset,
        commit_log_offset=log_offset,
        body=body,
        properties=parse_properties(properties.decode("utf-8", "replace")),
        flag=flag,
        sys_flag=sys_flag,
        born_timestamp_ms=born_ms,
        born_host=decode_host(born_host),
        store_timestamp_ms=store_ms,
        store_host=decode_host(store_host),
        reconsume_times=reconsumed,
        prepared_transaction_offset=prepared,
        body_crc=crc,
        store_size_bytes=size,
        offset_msg_id=(store_host + _LONG.pack(log_offset)).hex().upper(),
    )


def _cut(data: bytes | memoryview, start: int, length: int) -> tuple[bytes, int]:
    end = start + length
    if length < 0 or end > len(data):
        raise ProtocolError(f"message holds {length} bytes at {start} of {len(data)}")
    return bytes(data[start:end]), end
