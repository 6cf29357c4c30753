"""Stored messages: the format in which brokers store messages and return them in the body of a pull.

    size:i32 | magic:i32 | body_crc:i32 | queue_id:i32 | flag:i32 | queue_offset:i64 | commit_log_offset:i64
    | sys_flag:i32 | born_timestamp:i64 | born_host | store_timestamp:i64 | store_host | reconsume_times:i32
    | prepared_transaction_offset:i64 | body_length:i32, body | topic_length:i8 (V1) or i16 (V2), topic
    | properties_length:i16, properties

``size`` counts itself; bytes after the properties are ignored. A host has 8 bytes, or 20 if the sys flag
says IPv6.
Source of the rule: MessageDecoder.decode and encode, MessageVersion (Java client). In Java a message that
cannot be read becomes null and the rest of the buffer is lost, and a size that is too small is not noticed.
Here both are errors.
"""

import struct
import zlib
from collections import deque
from collections.abc import Iterable
from math import inf

from rmqtools.compiled import twins
from rmqtools.errors import ProtocolError
from rmqtools.model.block import MAX_DECOMPRESSED_BYTES
from rmqtools.model.message import MessageExt, undecoded_message
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.protocol.messages.compression import CompressionType, compress, decompress
from rmqtools.protocol.messages.hosts import decode_host, encode_host
from rmqtools.protocol.messages.properties import format_properties
from rmqtools.protocol.messages.stored_head import HEAD_FORMS, V6_FLAGS

MESSAGE_MAGIC_CODE = -626843481  # V1: 0xDAA320A7
MESSAGE_MAGIC_CODE_V2 = -626843477  # V2: 0xDAA320AB, two bytes of topic length
BLANK_MAGIC_CODE = -875286124  # fills the end of a commit log file; never in a pull
MESSAGE_MAGIC_CODE_POSITION = 4
QUEUE_ID_POSITION = 12
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
_MAX_LONG = 2**63 - 1


_IPV4 = HEAD_FORMS[0]
if twins is not None and not twins.bind_message_ext(MessageExt):
    twins = None  # type: ignore[assignment]  # this is a reload: they make the first MessageExt
_SMALLEST = _IPV4.needed.size + _V1_TOPIC_LENGTH.size + _SHORT.size  # no body, no topic, no properties


def message_starts(data: bytes | memoryview, *, base: int = 0, most: float = inf) -> list[int]:
    """Return where each message of a pull body begins, by the chain of sizes. Checks nothing else.

    Args:
        data: the body.
        base: is added to each: where ``data`` itself will begin.
        most: how many messages were asked for; a batch stored as one message counts as one.

    Raises:
        ProtocolError: more messages, or an impossible size; :func:`whole_starts` gives the messages in front
            of it.
    """
    starts, start = _follow_sizes(data, base)
    if len(starts) > most:
        raise ProtocolError(f"pull body of {len(data)} bytes: {len(starts)} messages, {most} were asked for")
    end = len(data)
    if start != end:
        at = starts[-1] - base if start > end else start
        size = _INT.unpack_from(data, at)[0] if at <= end - _INT.size else end - at
        raise ProtocolError(f"pull body of {end} bytes: message of {size} bytes at {at}")
    return starts


def whole_starts(data: bytes | memoryview, *, base: int = 0) -> list[int]:
    """Return the begin of each message of a pull body, up to a size that is impossible."""
    starts, start = _follow_sizes(data, base)
    return starts[:-1] if start > len(data) else starts


def _follow_sizes(data: bytes | memoryview, base: int) -> tuple[list[int], int]:
    """Return where messages begin, and where the chain of their sizes ends, perhaps behind the data."""
    if twins is not None:
        followed: tuple[list[int], int] = twins.follow_sizes(data, base, _SMALLEST)
        return followed
    starts: list[int] = []
    append, size_at, smallest = starts.append, _INT.unpack_from, _SMALLEST
    start, end = 0, len(data)
    while start <= end - smallest:
        (size,) = size_at(data, start)
        if size < smallest:
            break
        append(base + start)
        start += size
    return starts, start


def queue_offset_at(data: bytes | memoryview, start: int) -> int:
    """Return the queue offset of the message at ``start``, one of ``message_starts``."""
    offset: int = _LONG.unpack_from(data, start + QUEUE_OFFSET_POSITION)[0]
    return offset


def queue_id_at(data: bytes | memoryview, start: int) -> int:
    """Return the queue id of the message at ``start``, one of ``message_starts``."""
    queue_id: int = _INT.unpack_from(data, start + QUEUE_ID_POSITION)[0]
    return queue_id


def placed_in_queue(data: bytes, queue_id: int, offset_delta: int) -> bytes:
    """Return a pull body whose messages have another queue id, and offsets that are so much higher.

    Source of the rule: PullAPIWrapper.processPullResult (Java client), for static topics.
    Stops at a message whose size is impossible, as :func:`whole_starts` does.

    Raises:
        ProtocolError: an offset that no queue can have.
    """
    placed = bytearray(data)
    for start in whole_starts(data):
        offset = queue_offset_at(data, start) + offset_delta
        if not 0 <= offset < _MAX_LONG:
            raise ProtocolError(f"message at {start} has the queue offset {offset} in a static topic")
        _INT.pack_into(placed, start + QUEUE_ID_POSITION, queue_id)
        _LONG.pack_into(placed, start + QUEUE_OFFSET_POSITION, offset)
    return bytes(placed)


def decode_messages(
    data: bytes | memoryview,
    *,
    starts: Iterable[int] | None = None,
    decompress_bodies: bool = True,
    max_body_bytes: int = MAX_DECOMPRESSED_BYTES,
    max_grown_bytes: float = inf,
    broker_name: str = "",
) -> list[MessageExt]:
    """Decode the messages of a pull body from the broker ``broker_name``; ``starts``: only these.

    Ends with the message that brings the decompressed bodies to ``max_grown_bytes`` or more: then fewer
    messages are returned than ``starts`` has.

    Raises:
        ProtocolError: one of them cannot be read; see ``decode_message``.
    """
    whole = bytes(data)
    starts = message_starts(whole) if starts is None else starts
    if twins is not None and type(starts) is list:
        plain: list[MessageExt] | None = twins.decode_plain(
            whole, starts, broker_name, _IPV4.fillers, decompress_bodies
        )
        if plain is not None:
            return plain
    return _decode(whole, starts, decompress_bodies, max_body_bytes, broker_name, max_grown_bytes)


def decode_message(
    data: bytes | memoryview,
    start: int = 0,
    *,
    decompress_body: bool = True,
    max_body_bytes: int = MAX_DECOMPRESSED_BYTES,
    broker_name: str = "",
) -> MessageExt:
    """Decode the message at ``start``.

    After decompression the sys flag has no compressed bit but keeps the type bits; empty bodies are not
    decompressed. The checksum is not compared: see ``check_body``.

    Raises:
        ProtocolError: not a message, an incomplete message, or a body that cannot be decompressed.
    """
    (message,) = _decode(bytes(data), (start,), decompress_body, max_body_bytes, broker_name)
    return message


def decompressed(message: MessageExt, max_bytes: int) -> MessageExt:
    """Return a message that was decoded without decompression, with its body as it was sent.

    Raises:
        ProtocolError: a body that cannot be decompressed, or is larger than ``max_bytes``.
    """
    if not message.sys_flag & COMPRESSED_FLAG or not message.body:
        return message
    body = decompress(CompressionType.of_sys_flag(message.sys_flag), message.body, max_bytes=max_bytes)
    return message.with_values(body=body, sys_flag=message.sys_flag & ~COMPRESSED_FLAG)


def check_body(message: MessageExt, body: bytes) -> bool:
    """Return whether ``body`` in its stored form (still compressed) has the message's checksum."""
    return body_crc(body) == message.body_crc


def body_crc(body: bytes | memoryview) -> int:
    """Return the checksum that brokers store: CRC-32 without its highest bit."""
    return zlib.crc32(body) & _CRC_MASK


def encode_message(message: MessageExt, *, version: int = MESSAGE_MAGIC_CODE) -> bytes:
    """Encode a message as brokers store it. Computes the size, and the checksum if it is 0.

    Raises:
        ValueError: topic or properties are too long for the version, or a host is not an address.
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
    data: bytes,
    starts: Iterable[int],
    decompress_bodies: bool,
    max_body_bytes: int,
    broker_name: str,
    room: float = inf,
) -> list[MessageExt]:
    messages: list[MessageExt] = []
    known_born = known_store = topic_bytes = b""
    topic = ""
    start, whole_end, left = 0, len(data), iter(starts)
    short_at, unpack, head_size = _SHORT.unpack_from, _IPV4.needed.unpack_from, _IPV4.needed.size
    try:
        for start in left:
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
                if (room := room - len(body)) <= 0:
                    deque(left, maxlen=0)  # ends the loop; a test for each message would cost all of them
            text = data[topic_end + 2 : end]
            messages.append(
                undecoded_message(topic, queue_offset, body, broker_name, form.fillers, head, text)
            )
    except (struct.error, IndexError) as error:
        raise ProtocolError(f"message at {start} of {len(data)} bytes is cut off: {error}") from error
    return messages


def _checked_hosts(born: bytes, store: bytes) -> tuple[bytes, bytes]:
    """Refuse invalid hosts now, because they are decoded only when they are used."""
    decode_host(born)
    decode_host(store)
    return born, store


def _with_sys_flag(head: bytes, sys_flag: int) -> bytes:
    return head[:SYSFLAG_POSITION] + _INT.pack(sys_flag) + head[SYSFLAG_POSITION + _INT.size :]


def _topic_span(data: bytes, magic: int, start: int, length_at: int) -> tuple[int, int]:
    """Return where the topic begins and ends in a message of version 2, the only other one."""
    if magic != MESSAGE_MAGIC_CODE_V2:
        raise ProtocolError(f"message at {start} has the magic number {magic}")
    begin = length_at + _SHORT.size
    return begin, begin + int(_SHORT.unpack_from(data, length_at)[0])
