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
from collections.abc import Iterable, Mapping
from typing import Any

from rmqtools.errors import ProtocolError
from rmqtools.model.message import SLOTS, Filler, MessageExt, Undecoded, undecoded_message
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
_pack_long = _LONG.pack
_SHORT = struct.Struct(">h")
_V1_TOPIC_LENGTH = struct.Struct(">b")
_TOPIC_LENGTHS = {MESSAGE_MAGIC_CODE: _V1_TOPIC_LENGTH, MESSAGE_MAGIC_CODE_V2: _SHORT}
_CRC_MASK = 0x7FFF_FFFF
_MAX_SHORT = 0x7FFF


def _fixed(born_bytes: int, store_bytes: int) -> struct.Struct:
    return struct.Struct(f">iiiiiqqiq{born_bytes}sq{store_bytes}siqi")


_V6_FLAGS = BORNHOST_V6_FLAG | STOREHOSTADDRESS_V6_FLAG
_FIXED = {
    0: _fixed(8, 8),
    BORNHOST_V6_FLAG: _fixed(20, 8),
    STOREHOSTADDRESS_V6_FLAG: _fixed(8, 20),
    _V6_FLAGS: _fixed(20, 20),
}
_IPV4 = _FIXED[0]
_SMALLEST = _IPV4.size + _V1_TOPIC_LENGTH.size + _SHORT.size  # no body, no topic, no properties
# which of the fixed fields is which
_SIZE, _LOG_OFFSET, _SYS_FLAG, _BORN_HOST, _STORE_HOST, _BODY_LENGTH = 0, 6, 7, 9, 11, 14
_NUMBERS = {
    "store_size_bytes": _SIZE,
    "body_crc": 2,
    "queue_id": 3,
    "flag": 4,
    "commit_log_offset": _LOG_OFFSET,
    "sys_flag": _SYS_FLAG,
    "born_timestamp_ms": 8,
    "store_timestamp_ms": 10,
    "reconsume_times": 12,
    "prepared_transaction_offset": 13,
}


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
    form = _FIXED[message.sys_flag & _V6_FLAGS]
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


def _decode(
    data: bytes, starts: Iterable[int], decompress_bodies: bool, max_body_bytes: int, broker_name: str
) -> list[MessageExt]:
    messages: list[MessageExt] = []
    known_born = known_store = topic_bytes = b""
    topic = ""
    start, whole_end = 0, len(data)
    unpack, fixed_size, short_at = _IPV4.unpack_from, _IPV4.size, _SHORT.unpack_from
    try:
        for start in starts:
            fixed, body_at = unpack(data, start), start + fixed_size
            size, magic, _, _, _, queue_offset, _, sys_flag, _, born, _, store, _, _, length = fixed
            if sys_flag & _V6_FLAGS:
                form = _FIXED[sys_flag & _V6_FLAGS]
                fixed, body_at = form.unpack_from(data, start), start + form.size
                born, store, length = fixed[_BORN_HOST], fixed[_STORE_HOST], fixed[_BODY_LENGTH]
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
            body = data[body_at:body_end]
            if sys_flag & COMPRESSED_FLAG and decompress_bodies and body:
                body = decompress(CompressionType.of_sys_flag(sys_flag), body, max_bytes=max_body_bytes)
                fixed = (*fixed[:_SYS_FLAG], sys_flag & ~COMPRESSED_FLAG, *fixed[_SYS_FLAG + 1 :])
            undecoded = _FILLERS, fixed, data[topic_end + 2 : end], broker_name
            messages.append(undecoded_message(topic, queue_offset, body, undecoded))
    except (struct.error, IndexError) as error:
        raise ProtocolError(f"message at {start} of {len(data)} bytes is cut off: {error}") from error
    return messages


def _checked_hosts(born: bytes, store: bytes) -> tuple[bytes, bytes]:
    """Say now, not when they are asked for, what is no host."""
    decode_host(born)
    decode_host(store)
    return born, store


def _fill_properties(message: MessageExt, undecoded: Undecoded) -> dict[str, str]:
    properties = parse_properties(undecoded[2].decode("utf-8", "replace"))
    _set_properties(message, properties)
    return properties


def _fill_broker_name(message: MessageExt, undecoded: Undecoded) -> str:
    _set_broker_name(message, undecoded[3])
    return undecoded[3]


def _fill_places(message: MessageExt, undecoded: Undecoded) -> None:
    fixed = undecoded[1]
    store_host = fixed[_STORE_HOST]
    _set_born_host(message, decode_host(fixed[_BORN_HOST]))
    _set_store_host(message, decode_host(store_host))
    _set_offset_msg_id(message, (store_host + _pack_long(fixed[_LOG_OFFSET])).hex().upper())


def _place_filler(name: str) -> Filler:
    """All three at once: who asks for one asks for the others."""
    get = getattr(MessageExt, name).__get__

    def fill(message: MessageExt, undecoded: Undecoded) -> Any:
        _fill_places(message, undecoded)
        return get(message)

    return fill


def _number_filler(name: str, index: int) -> Filler:
    put = SLOTS[name]

    def fill(message: MessageExt, undecoded: Undecoded) -> Any:
        value = undecoded[1][index]
        put(message, value)
        return value

    return fill


_set_properties, _set_broker_name = SLOTS["properties"], SLOTS["broker_name"]
_set_born_host, _set_store_host = SLOTS["born_host"], SLOTS["store_host"]
_set_offset_msg_id = SLOTS["offset_msg_id"]
_FILLERS: Mapping[str, Filler] = {
    "properties": _fill_properties,
    "broker_name": _fill_broker_name,
    **{name: _place_filler(name) for name in ("born_host", "store_host", "offset_msg_id")},
    **{name: _number_filler(name, index) for name, index in _NUMBERS.items()},
}


def _topic_span(data: bytes, magic: int, start: int, length_at: int) -> tuple[int, int]:
    """Where the topic of a message that is not of the usual version begins and ends."""
    if magic != MESSAGE_MAGIC_CODE_V2:
        raise ProtocolError(f"message at {start} has the magic number {magic}")
    begin = length_at + _SHORT.size
    return begin, begin + int(_SHORT.unpack_from(data, length_at)[0])
