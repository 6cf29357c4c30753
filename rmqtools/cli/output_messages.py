"""Messages as text, JSON lines, hex dumps, or in a format of the user's own."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from rmqtools import MessageExt
from rmqtools.errors import ConfigError
from rmqtools.model.copy_message import own_properties
from rmqtools.model.queue import queue_name
from rmqtools.visible_text import visible, visible_bytes, visible_json

Formatter = Callable[[MessageExt], bytes]

_HEX_WIDTH = 16  # bytes of a line
_TOKEN = re.compile(r"%(.)|\\(x[0-9a-fA-F]{2}|.)|([^%\\]+)", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_FIELDS: Mapping[str, Callable[[MessageExt], object]] = {
    "t": lambda message: message.topic,
    "b": lambda message: message.broker_name,
    "q": lambda message: message.queue_id,
    "o": lambda message: message.queue_offset,
    "k": lambda message: message.keys or "",
    "g": lambda message: message.tags or "",
    "i": lambda message: message.msg_id,
    "T": lambda message: message.store_timestamp_ms,
    "S": lambda message: len(message.body),
    "p": lambda message: json.dumps(own_properties(message.properties), ensure_ascii=False),
    "s": lambda message: message.body,
}
FORMAT_HELP = (
    "%t topic, %b broker, %q queue, %o offset, %k keys, %g tags, %i message id, %T store time (ms), %S size, "
    "%p properties (JSON), %s body, %%, \\n, \\t, \\xNN"
)


def formatter(name: str, own: str | None, *, for_terminal: bool = False) -> Formatter:
    """Return the function that makes a message's bytes: ``text``, ``json``, ``hex``, or the user's format.

    ``for_terminal``: what senders decide is made visible, and text has keys and tags before the body; the
    user's own format stays as it is.

    Raises:
        ConfigError: the user's format has an unknown field.
    """
    shown = visible_bytes if for_terminal else bytes
    if own is not None:
        return _as_format(own, shown)
    if name == "text":
        return _as_line if for_terminal else lambda message: message.body + b"\n"
    return {"json": _as_json, "hex": _as_hex}[name]


def message_row(message: MessageExt, *, as_base64: bool = False) -> dict[str, Any]:
    """Make an object for JSON. The body is ``body`` if it is UTF-8, else, or if wished, ``body_base64``."""
    return {
        "topic": message.topic,
        "broker_name": message.broker_name,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "msg_id": message.msg_id,
        "offset_msg_id": message.offset_msg_id,
        **_body(message.body, as_base64=as_base64),
        "tags": message.tags,
        "keys": message.keys,
        "sharding_key": message.sharding_key,
        "properties": own_properties(message.properties),
        "flag": message.flag,
        "born_timestamp_ms": message.born_timestamp_ms,
        "born_host": message.born_host,
        "store_timestamp_ms": message.store_timestamp_ms,
        "store_host": message.store_host,
        "reconsume_times": message.reconsume_times,
    }


def _body(body: bytes, *, as_base64: bool) -> dict[str, str]:
    if not as_base64:
        try:
            return {"body": body.decode()}
        except UnicodeDecodeError:
            pass
    return {"body_base64": base64.b64encode(body).decode()}


def _as_line(message: MessageExt) -> bytes:
    """Keys and tags, if there are any, and the body, for people."""
    named = (("keys", message.keys), ("tags", message.tags))
    head = "".join(f"{name}={value} " for name, value in named if value)
    return visible_bytes(_bytes(head) + message.body) + b"\n"


def _as_json(message: MessageExt) -> bytes:
    return visible_json(json.dumps(message_row(message), ensure_ascii=False)).encode() + b"\n"


def _as_hex(message: MessageExt) -> bytes:
    place = f"{message.topic} {queue_name(message)} offset {message.queue_offset}"
    body = message.body
    lines = [visible(f"{place}, {len(body)} bytes")]
    for start in range(0, len(body), _HEX_WIDTH):
        part = body[start : start + _HEX_WIDTH]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<{3 * _HEX_WIDTH}} {shown}")
    return "\n".join(lines).encode() + b"\n"


def _as_format(text: str, shown: Callable[[bytes], bytes]) -> Formatter:
    parts: list[bytes | Callable[[MessageExt], object]] = []
    for field, escape, plain in _TOKEN.findall(text + ("" if text[-1:] not in "%\\" else " ")):
        if field == "%" or plain:
            parts.append((field or plain).encode())
        elif field in _FIELDS:
            parts.append(_FIELDS[field])
        elif escape[:1] == "x" and len(escape) == 3:
            parts.append(bytes([int(escape[1:], 16)]))
        elif escape in _ESCAPES:
            parts.append(_ESCAPES[escape])
        else:
            wrong = f"%{field}" if field else f"\\{escape}"
            raise ConfigError(f"--format-string {text!r}: {wrong!r} is unknown; known: {FORMAT_HELP}")
    return lambda message: b"".join(
        part if isinstance(part, bytes) else shown(_bytes(part(message))) for part in parts
    )


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="backslashreplace")
