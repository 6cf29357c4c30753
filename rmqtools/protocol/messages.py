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

from rmqtools.errors import ProtocolError
from rmqtools.model.message import MessageExt, undecoded_message
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.protocol.compression import MAX_BODY_BYTES, CompressionType, compress, decompress
from rmqtools.protocol.hosts import decode_host, encode_host
from rmqtools.protocol.properties import format_properties
from rmqtools.protocol.stored_head import HEAD_FORMS, V6_FLAGS

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


_IPV4 = HEAD_FORMS[0]
_SMALLEST = _IPV4.needed.size + _V1_TOPIC_LENGTH.size + _SHORT.size  # no body, no topic, no properties


def message_starts(data: bytes | memoryview, *, base: int = 0) -> list[int]:
    """Where each message of a pull body begins, by the chain of sizes; nothing else is looked at.

    ``base`` is added to each: where ``data`` itself will begin.

    Raises:
        ProtocolError: a size leads nowhere.
    """
    starts: list[int] = []
    append, size_at, smallest = starts.append, _INT.unpack_from, _SMALLEST
    start, end = 0, len(data)
    while start <= end - smallest:
        (size,) = size_at(data, start)
        if size < smallest:
            break
        append(base + start)
        start += size
    if start != end:
        at = starts[-1] - base if start > end else start
        size = size_at(data, at)[0] if at <= end - _INT.size else end - at
        raise ProtocolError(f"pull body of {end} bytes: message of {size} bytes at {at}")
    return starts


def queue_offset_at(data: bytes | memoryview, start: int) -> int:
    """The queue offset of the message that begins at ``start``, one of ``message_starts``."""
    offset: int = _LONG.unpack_from(data, start + QUEUE_OFFSET_POSITION)[0]
    return offset


def decode_messages(
    data: bytes | memoryview,
    *,
    starts: Iterable[int] | None = None,
    decompress_bodies: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
    broker_name: str = "",
) -> list[MessageExt]:
    """Read the messages of a pull body, which came from the broker of that name; ``starts``: only these.

    Raises:
        ProtocolError: one of them cannot be read; see ``decode_message``.
    """
    whole = bytes(data)
    starts = message_starts(whole) if starts is None else starts
    return _decode(whole, starts, decompress_bodies, max_body_bytes, broker_name)


def decode_message(
    data: bytes | memoryview,
    start: int = 0,
    *,
    decompress_body: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
    broker_name: str = "",
) -> MessageExt:
    """Read the message that begins at ``start``.

    A decompressed body loses the compressed bit of its sys flag and keeps the type bits; an empty one stays
    as it is. The checksum is not compared: see ``check_body``.

    Raises:
        ProtocolError: no message, cut off, or a body that cannot be decompressed.
    """
    (message,) = _decode(bytes(data), (start,), decompress_body, max_body_bytes, broker_name)
    return message


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
    form = HEAD_FORMS[message.sys_flag & V6_FLAGS].whole
    head = form.pack(
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
    return b"".join((head, *rest))


def _stored_body(message: MessageExt) -> bytes:
    if not message.sys_flag & COMPRESSED_FLAG or not message.body:
        return message.body
    return compress(CompressionType.of_sys_flag(message.sys_flag), message.body)


def _decode(
    data: bytes, starts: Iterable[int], decompress_bodies: bool, max_body_bytes: int, broker_name: str
) -> list[MessageExt]:
    messages: list[MessageExt] = []
    known_born = known_store = topic_bytes = b""
    topic = ""
    start, whole_end = 0, len(data)
    short_at = _SHORT.unpack_from
    unpack, head_size = _IPV4.needed.unpack_from, _IPV4.needed.size
    try:
        for start in starts:
            form, body_at = _IPV4, start + head_size
            size, magic, queue_offset, sys_flag, born, store, length = unpack(data, start)
            if sys_flag & V6_FLAGS:
                form = HEAD_FORMS[sys_flag & V6_FLAGS]
                body_at = start + form.needed.size
                *_, born, store, length = form.needed.unpack_from(data, start)
            body_end = body_at + length if length > 0 else body_at
            if magic == MESSAGE_MAGIC_CODE:  # nearly always
                topic_at = body_end + 1
                topic_end = topic_at + (data[body_end] ^ 0x80) - 0x80  # a signed byte
            else:
                topic_at, topic_end = _topic_span(data, magic, start, body_end)
            (length,) = short_at(data, topic_end)
            end = topic_end + 2 + length if length > 0 else topic_end + 2
            if topic_end < topic_at or end > start + size or end > whole_end:
                raise ProtocolError(f"message at {start} says {size} bytes and holds {end - start}")
            if born != known_born or store != known_store:
                known_born, known_store = _checked_hosts(born, store)
            if data[topic_at:topic_end] != topic_bytes:
                topic_bytes = data[topic_at:topic_end]
                topic = topic_bytes.decode("utf-8", "replace")
            body, head = data[body_at:body_end], data[start:body_at]
            if sys_flag & COMPRESSED_FLAG and decompress_bodies and body:
                body = decompress(CompressionType.of_sys_flag(sys_flag), body, max_bytes=max_body_bytes)
                head = _with_sys_flag(head, sys_flag & ~COMPRESSED_FLAG)
            text = data[topic_end + 2 : end]
            messages.append(
                undecoded_message(topic, queue_offset, body, broker_name, form.fillers, head, text)
            )
    except (struct.error, IndexError) as error:
        raise ProtocolError(f"message at {start} of {len(data)} bytes is cut off: {error}") from error
    return messages


def _checked_hosts(born: bytes, store: bytes) -> tuple[bytes, bytes]:
    """Say now, not when they are asked for, what is no host."""
    decode_host(born)
    decode_host(store)
    return born, store


def _with_sys_flag(head: bytes, sys_flag: int) -> bytes:
    return head[:SYSFLAG_POSITION] + _INT.pack(sys_flag) + head[SYSFLAG_POSITION + _INT.size :]


def _topic_span(data: bytes, magic: int, start: int, length_at: int) -> tuple[int, int]:
    """Where the topic of a message that is not of the usual version begins and ends."""
    if magic != MESSAGE_MAGIC_CODE_V2:
        raise ProtocolError(f"message at {start} has the magic number {magic}")
    begin = length_at + _SHORT.size
    return begin, begin + int(_SHORT.unpack_from(data, length_at)[0])
