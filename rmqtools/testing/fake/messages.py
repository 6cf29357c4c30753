"""Makes stored messages for tests: every field has a default, and a test gives only those it needs."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_TAGS
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.protocol.messages.stored import SYSFLAG_POSITION, encode_message

_INT = struct.Struct(">i")


def stored_message(
    topic: str = "T",
    queue_offset: int = 0,
    *,
    body: bytes | None = None,
    tags: str | None = None,
    properties: Mapping[str, str] | None = None,
    **fields: object,
) -> MessageExt:
    """Return a message as a broker stores it.

    Args:
        topic: its topic.
        queue_offset: its offset in the queue; the commit log offset is a hundred times this.
        body: None: the queue offset in decimal.
        tags: its tag, in addition to ``properties``.
        properties: all its properties.
        fields: any other field of :class:`MessageExt`.
    """
    known = {} if properties is None else dict(properties)
    given: dict[str, object] = {
        "topic": topic,
        "queue_id": 0,
        "queue_offset": queue_offset,
        "commit_log_offset": queue_offset * 100,
        "body": b"%d" % queue_offset if body is None else body,
        "properties": known if tags is None else known | {PROPERTY_TAGS: tags},
        "flag": 0,
        "sys_flag": 0,
        "born_timestamp_ms": 1,
        "born_host": "127.0.0.1:1",
        "store_timestamp_ms": 2,
        "store_host": "127.0.0.1:2",
    }
    return MessageExt(**(given | fields))  # type: ignore[arg-type]


def encode_stored(messages: Iterable[MessageExt]) -> bytes:
    """Return the body of a pull answer with these messages."""
    return b"".join(map(encode_message, messages))


def encode_with_body(message: MessageExt) -> bytes:
    """Encode a message whose body is already compressed if its sys flag says so."""
    if not message.sys_flag & COMPRESSED_FLAG:
        return encode_message(message)
    data = bytearray(encode_message(replace(message, sys_flag=message.sys_flag & ~COMPRESSED_FLAG)))
    _INT.pack_into(data, SYSFLAG_POSITION, message.sys_flag)
    return bytes(data)
