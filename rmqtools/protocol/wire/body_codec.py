"""Converts values of the model to the JSON that fastjson2 writes, and back.

A dataclass is an object: its fields in camelCase, in alphabetical order, without None. Tuples are arrays.
Keys that are not texts have no quotes, as in Java (see ``loose_json``). Unknown fields are ignored.
"""

import dataclasses
import json
import math
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache, partial
from typing import Any, TypeVar

from rmqtools.errors import ProtocolError
from rmqtools.model.group import HeartbeatData, LockBatchResponseBody, ProducerInfo
from rmqtools.model.route import TopicQueueMapping
from rmqtools.model.running_info import ConsumeStatus, PopProcessQueueInfo, ProcessQueueInfo
from rmqtools.protocol.headers.codec import camel_case, parse_int
from rmqtools.protocol.wire.loose_json import parse_json

T = TypeVar("T")
_Reader = Callable[[Any], Any]

_WIRE_NAMES: Mapping[tuple[type, str], str] = {
    (HeartbeatData, "client_id"): "clientID",
    (ProducerInfo, "remote_ip"): "remoteIP",
    (LockBatchResponseBody, "lock_ok_mq_set"): "lockOKMQSet",
    (TopicQueueMapping, "broker_name"): "bname",
    (ProcessQueueInfo, "cached_msg_size_in_mib"): "cachedMsgSizeInMiB",
    (ProcessQueueInfo, "dropped"): "droped",  # upstream's spelling
    (PopProcessQueueInfo, "dropped"): "droped",
    (ConsumeStatus, "pull_rt"): "pullRT",
    (ConsumeStatus, "pull_tps"): "pullTPS",
    (ConsumeStatus, "consume_rt"): "consumeRT",
    (ConsumeStatus, "consume_ok_tps"): "consumeOKTPS",
    (ConsumeStatus, "consume_failed_tps"): "consumeFailedTPS",
}

_short = reprlib.repr  # never the whole of a large value
_format_text = json.JSONEncoder(ensure_ascii=False).encode


def parse_body(body_class: type[T], data: bytes) -> T:
    """Read a body into a dataclass of the model.

    Raises:
        ProtocolError: not JSON, a required field is missing, or a value has another type.
    """
    value: T = _read_object(body_class, parse_json(data))
    return value


def format_body(value: Any) -> bytes:
    """Write a dataclass of the model as a body, byte for byte as Java does.

    Raises:
        ProtocolError: a text that is no Unicode (a lone surrogate).
    """
    try:
        return _format(value).encode()
    except UnicodeEncodeError as error:
        raise ProtocolError(f"{type(value).__name__} holds text that is no Unicode: {error}") from error


def _format(value: Any) -> str:
    if isinstance(value, str):
        return _format_text(str(value))
    if value is None or isinstance(value, int):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_format(key)}:{_format(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple | list | set | frozenset):
        return "[" + ",".join(map(_format, value)) + "]"
    if isinstance(value, float):
        return _format_double(value)
    items = ((f'"{wire}"', getattr(value, name)) for wire, name in _written_fields(value.__class__))
    return "{" + ",".join(f"{wire}:{_format(item)}" for wire, item in items if item is not None) + "}"


@cache
def _written_fields(body_class: type) -> list[tuple[str, str]]:
    """Return the fields of a dataclass as (name on the wire, attribute), in alphabetical order of the former.

    Raises:
        TypeError: no dataclass.
    """
    return sorted((_wire_name(body_class, f.name), f.name) for f in dataclasses.fields(body_class))


def _format_double(value: float) -> str:
    """Format a double like Java: with an exponent below 0.001 and from ten millions on; NaN is null."""
    if not math.isfinite(value):
        return "null"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{int(exponent) + len(digits) - 1}"


def _wire_name(owner: type, name: str) -> str:
    return _WIRE_NAMES.get((owner, name)) or camel_case(name)


def _read_object(body_class: Any, value: Any) -> Any:
    if not isinstance(value, dict):
        raise ProtocolError(f"{body_class.__name__}: want an object, got {_short(value)}")
    arguments: dict[str, Any] = {}
    for f, wire, reader in _fields_of(body_class):
        item = value.get(wire)
        if item is not None:
            arguments[f.name] = _read_field(body_class, wire, reader, item)
        elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            raise ProtocolError(f"{body_class.__name__}.{wire} is missing")
    return body_class(**arguments)


def _read_field(body_class: type, wire: str, reader: _Reader, item: Any) -> Any:
    try:
        return reader(item)
    except ValueError as error:
        raise ProtocolError(f"{body_class.__name__}.{wire}: {error}") from None


@cache
def _fields_of(body_class: Any) -> tuple[tuple[Any, str, _Reader], ...]:
    hints = typing.get_type_hints(body_class)
    return tuple(
        (f, _wire_name(body_class, f.name), _reader_of(hints[f.name])) for f in dataclasses.fields(body_class)
    )


def _reader_of(hint: Any) -> _Reader:
    """Return the function that reads a value of this annotation."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _reader_of(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        return partial(_read_array, _reader_of(arguments[0]))
    if origin is not None:
        return partial(_read_mapping, _key_reader_of(arguments[0]), _reader_of(arguments[1]))
    if dataclasses.is_dataclass(hint):
        return partial(_read_object, hint)
    return partial(_read_scalar, hint)


def _key_reader_of(hint: Any) -> _Reader:
    if dataclasses.is_dataclass(hint):
        return lambda text: _read_object(hint, parse_json(text.encode()))
    return partial(parse_int, bits=64) if hint is int else str


def _read_scalar(kind: type, value: Any) -> Any:
    if type(value) is kind:
        return value
    if kind is float and type(value) is int:
        return float(value)
    raise ValueError(f"want {kind.__name__}, got {_short(value)}")


def _read_array(reader: _Reader, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"want an array, got {_short(value)}")
    return tuple(map(reader, value))


def _read_mapping(key_reader: _Reader, reader: _Reader, value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"want an object, got {_short(value)}")
    return {key_reader(key): reader(item) for key, item in value.items()}
