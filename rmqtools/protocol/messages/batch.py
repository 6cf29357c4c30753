"""The body of a batch request: messages of one topic, back to back, without topic and queue.

    size:i32 | magic:i32 = 0 | crc:i32 = 0 | flag:i32 | body_length:i32, body
    | properties_length:i16, properties

``size`` counts the whole message, itself included.
Source of the rule: MessageDecoder.encodeMessage, decodeMessages (Java client).
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from rmqtools.errors import ProtocolError
from rmqtools.protocol.messages.properties import parse_properties

_HEAD = struct.Struct(">iiiii")
_PROPERTIES_LENGTH = struct.Struct(">h")
FIXED_BYTES = _HEAD.size + _PROPERTIES_LENGTH.size
MAX_PROPERTIES_BYTES = 0x7FFF
MAX_MESSAGES = (
    65_536  # of a batch: 4 MiB, a broker's largest message, in pieces of 64 bytes with a unique key
)


class BatchMessage(NamedTuple):
    """One message of a batch."""

    flag: int
    body: bytes
    properties: dict[str, str]


def encode_batch(messages: Iterable[tuple[int, bytes | memoryview, bytes]]) -> bytes:
    """Encode messages: flag, body and properties of each, the text of ``format_properties`` in UTF-8.

    Raises:
        ValueError: more than 32767 bytes of properties.
    """
    parts: list[bytes] = []
    for flag, body, properties in messages:
        if type(body) is not bytes:
            body = bytes(body)  # a memoryview's length counts its items, which may be wider than a byte
        length, text_length = len(body), len(properties)
        if text_length > MAX_PROPERTIES_BYTES:
            raise ValueError(f"properties of {text_length} bytes: at most {MAX_PROPERTIES_BYTES}")
        head = _HEAD.pack(FIXED_BYTES + length + text_length, 0, 0, flag, length)
        parts += (head, body, _PROPERTIES_LENGTH.pack(text_length), properties)
    return b"".join(parts)


def decode_batch(data: bytes) -> list[BatchMessage]:
    """Read a batch body.

    Raises:
        ProtocolError: a length is impossible, or there are more messages than ``MAX_MESSAGES``.
    """
    messages: list[BatchMessage] = []
    start = 0
    while start < len(data):
        if len(messages) == MAX_MESSAGES:
            raise ProtocolError(f"batch of {len(data)} bytes has more than {MAX_MESSAGES} messages")
        message, start = _decode_one(data, start)
        messages.append(message)
    return messages


def without_first(data: bytes | memoryview, count: int) -> memoryview:
    """Return a batch body without its first messages; not copied."""
    start = 0
    for _ in range(count):
        start += _HEAD.unpack_from(data, start)[0]
    return memoryview(data)[start:]


def _decode_one(data: bytes, start: int) -> tuple[BatchMessage, int]:
    if len(data) - start < FIXED_BYTES:
        raise ProtocolError(f"batch of {len(data)} bytes is cut off at {start}")
    size, _, _, flag, body_length = _HEAD.unpack_from(data, start)
    end, body_start = start + size, start + _HEAD.size
    body_end = body_start + body_length
    properties_start = body_end + _PROPERTIES_LENGTH.size
    if not body_start <= body_end < properties_start <= end <= len(data):
        raise ProtocolError(f"batch message of {size} bytes at {start} of {len(data)}")
    (length,) = _PROPERTIES_LENGTH.unpack_from(data, body_end)
    if properties_start + length != end:
        raise ProtocolError(f"batch message of {size} bytes at {start} has properties of {length}")
    text = data[properties_start:end].decode("utf-8", "replace")
    return BatchMessage(flag, data[body_start:body_end], parse_properties(text)), end
