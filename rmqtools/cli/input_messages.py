"""Messages to send, from lines, JSON or rows of messages that were read."""

import base64
import binascii
import fcntl
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Any, BinaryIO

from rmqtools import Message
from rmqtools.errors import ConfigError
from rmqtools.model.copy_message import own_properties
from rmqtools.model.message_const import PROPERTY_SHARDING_KEY
from rmqtools.unknown_name import unknown_name

_READ_BYTES = 1024 * 1024
_TEXT_OF_JSON = re.compile(r'"(?:[^"\\]|\\.)*"')
_FIELDS = ("tags", "keys", "properties", "sharding_key", "flag", "delay_level", "delay", "deliver_at_ms")
_STORED = (  # of messages that consume or dlq export has written: they say where the message was
    *("topic", "broker_name", "queue_id", "queue_offset", "msg_id", "offset_msg_id", "born_timestamp_ms"),
    *("born_host", "store_timestamp_ms", "store_host", "reconsume_times", "origin_topic", "sys_flag"),
    "reserved_properties",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Default values of all messages; a JSON line takes precedence."""

    topic: str
    tags: str | None = None
    keys: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    sharding_key: str | None = None
    delay_level: int = 0
    delay: float | None = None

    def message(self, body: bytes) -> Message:
        """Make a message with this body."""
        return Message(
            self.topic,
            body,
            tags=self.tags,
            keys=self.keys,
            properties=self.properties,
            sharding_key=self.sharding_key,
            delay_level=self.delay_level,
            delay=self.delay,
        )

    def message_with(self, body: bytes, fields: Mapping[str, object]) -> Message:
        """Make a message with this body and these fields, which win over the template's."""
        base = self.message(body)
        known = {name: getattr(base, name) for name in _FIELDS if name not in fields}
        return Message(self.topic, body, **known | dict(fields))


def read_chunks(file: BinaryIO) -> Iterator[list[bytes]]:
    """Yield lines without their ends, as many at a time as have arrived.

    A pipe is made to hold as much as is read at a time, so that its writer goes on while lines are sent.
    Where the system refuses (a user has only so much in pipes) or cannot, it stays as it is.
    """
    if (resize := getattr(fcntl, "F_SETPIPE_SZ", None)) is not None:  # Linux has it
        with suppress(OSError):  # no pipe, or refused
            fcntl.fcntl(file, resize, _READ_BYTES)
    read = file.read1 if isinstance(file, BufferedReader) else file.read
    rest = b""
    while data := read(_READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]


def messages_of_lines(chunks: Iterable[list[bytes]], template: Template) -> Iterator[list[Message]]:
    """Make the messages of lines: a body each; empty lines are skipped."""
    for lines in chunks:
        if made := [template.message(line) for line in lines if line]:
            yield made


def messages_of_json(chunks: Iterable[list[bytes]], template: Template) -> Iterator[list[Message]]:
    """Make the messages of JSON objects, one a line or over several lines, alone or in arrays.

    Raises:
        ConfigError: an object that is no message, or text that is no JSON; names the line where it begins.
    """
    begun: list[bytes] = []  # lines of a value that goes on
    open_brackets = before = first = 0
    for lines in chunks:
        made: list[Message] = []
        for number, line in enumerate(lines, before + 1):
            if not begun:
                if not line.strip():
                    continue
                first = number
            begun.append(line)
            open_brackets += _opened_brackets(line)
            if open_brackets <= 0:
                made += _of_json(b"\n".join(begun), first, template)
                begun, open_brackets = [], 0
        before += len(lines)
        if made:
            yield made
    if begun:
        raise ConfigError(f"line {first}: the JSON that begins here does not end")


def _opened_brackets(line: bytes) -> int:
    """Return how many brackets a line of JSON opens more than it closes."""
    bare = _TEXT_OF_JSON.sub("", line.decode("utf-8", "replace"))
    return bare.count("{") + bare.count("[") - bare.count("}") - bare.count("]")


def messages_of_rows(rows: Iterable[list[dict[str, Any]]], template: Template) -> Iterator[list[Message]]:
    """Make messages of those in a Parquet file that consume wrote; rows as of ``arrow.read_messages``."""
    for some in rows:
        yield [_of_row(row, template) for row in some]


def _of_row(row: dict[str, Any], template: Template) -> Message:
    stored = row["properties"]
    fields = {name: row[name] for name in ("tags", "keys", "flag") if row.get(name) is not None}
    if own := own_properties(stored):
        fields["properties"] = own
    if PROPERTY_SHARDING_KEY in stored:
        fields["sharding_key"] = stored[PROPERTY_SHARDING_KEY]
    return template.message_with(row["body"], fields)


def _of_json(text: bytes, number: int, template: Template) -> list[Message]:
    try:
        value = json.loads(text)
        return [_of_object(given, template) for given in (value if isinstance(value, list) else [value])]
    except (ConfigError, ValueError, TypeError) as error:
        raise ConfigError(f"line {number}: {error}") from error


def _of_object(given: object, template: Template) -> Message:
    if not isinstance(given, dict):
        raise ConfigError(f"want an object with 'body', not {repr(given)[:60]}")
    return template.message_with(_body(given), _fields(given))


def _body(given: dict[str, object]) -> bytes:
    if "body_base64" in given:
        try:
            return base64.b64decode(str(given["body_base64"]), validate=True)
        except binascii.Error as error:
            raise ConfigError(f"body_base64: {error}") from error
    if "body" not in given:
        raise ConfigError("no 'body' and no 'body_base64'")
    body = given["body"]
    return body.encode() if isinstance(body, str) else json.dumps(body, ensure_ascii=False).encode()


def _fields(given: dict[str, object]) -> dict[str, object]:
    fields = {}
    for name, value in given.items():
        if name in _FIELDS and value is not None:
            fields[name] = value
        elif name not in (*_FIELDS, *_STORED, "body", "body_base64"):
            raise ConfigError(unknown_name("field", name, ["body", "body_base64", *_FIELDS]))
    return fields
