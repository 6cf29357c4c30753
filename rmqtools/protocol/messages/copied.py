"""Messages of a batch request made from stored messages, without decoding bodies.

    stored:  head | body_length, body | topic_length, topic | properties_length, properties
    copied:  size | magic = 0 | crc = 0 | flag | body_length, body | properties_length, properties

See :mod:`rmqtools.protocol.messages.stored` and :mod:`rmqtools.protocol.messages.batch`.
"""

import struct
from typing import NamedTuple

from rmqtools.errors import ProtocolError
from rmqtools.model.sys_flag import BORNHOST_V6_FLAG, STOREHOSTADDRESS_V6_FLAG
from rmqtools.protocol.messages.batch import FIXED_BYTES, MAX_PROPERTIES_BYTES
from rmqtools.protocol.messages.stored import (
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
)
from rmqtools.protocol.messages.stored_head import V6_FLAGS

_SHORT = struct.Struct(">h")
_HEADS = {  # by the flags of addresses of IPv6: size, magic, flag, queue offset, sys flag, store time, body
    born | store: struct.Struct(f">ii8xiq8xi8x{20 if born else 8}xq{20 if store else 8}x12xi")
    for born in (0, BORNHOST_V6_FLAG)
    for store in (0, STOREHOSTADDRESS_V6_FLAG)
}
_COPIED_HEAD = struct.Struct(">iiiii")


class StoredParts(NamedTuple):
    """The parts of a stored message that a copy has; the properties are its text, one ``bytes`` each."""

    queue_offset: int
    store_timestamp_ms: int
    sys_flag: int
    flag: int
    body: bytes
    properties: list[bytes]


def stored_parts(data: bytes, start: int) -> StoredParts:
    """Return the parts of the message at ``start``, one of a block's.

    Raises:
        ProtocolError: it is not a message, or it is incomplete.
    """
    head = _HEADS[0]
    try:
        size, magic, flag, queue_offset, sys_flag, stored_ms, length = head.unpack_from(data, start)
        if sys_flag & V6_FLAGS:
            head = _HEADS[sys_flag & V6_FLAGS]
            *_, stored_ms, length = head.unpack_from(data, start)
        body_at = start + head.size
        body_end = body_at + max(0, length)
        if magic == MESSAGE_MAGIC_CODE:
            topic_end = body_end + 1 + data[body_end]
        elif magic == MESSAGE_MAGIC_CODE_V2:
            topic_end = body_end + 2 + _SHORT.unpack_from(data, body_end)[0]
        else:
            raise ProtocolError(f"message at {start} has the magic number {magic}")
        (text_length,) = _SHORT.unpack_from(data, topic_end)
    except (struct.error, IndexError) as error:
        raise ProtocolError(f"message at {start} of {len(data)} bytes is cut off: {error}") from error
    end = topic_end + 2 + text_length
    if not body_end < topic_end <= end <= start + size <= len(data):
        raise ProtocolError(f"message at {start} says {size} bytes and holds {end - start}")
    return StoredParts(
        queue_offset,
        stored_ms,
        sys_flag,
        flag,
        data[body_at:body_end],
        data[topic_end + 2 : end].split(b"\x02"),
    )


def encode_copied(parts: StoredParts, properties: bytes) -> tuple[bytes, ...]:
    """Return the pieces of one message of a batch, to be joined.

    Raises:
        ProtocolError: the properties, with those of the copy, are longer than a message can have.
    """
    length, text_length = len(parts.body), len(properties)
    if text_length > MAX_PROPERTIES_BYTES:
        raise ProtocolError(
            f"the message at offset {parts.queue_offset} has {text_length} bytes of properties with those of "
            f"the copy: at most {MAX_PROPERTIES_BYTES}"
        )
    head = _COPIED_HEAD.pack(FIXED_BYTES + length + text_length, 0, 0, parts.flag, length)
    return head, parts.body, _SHORT.pack(text_length), properties
