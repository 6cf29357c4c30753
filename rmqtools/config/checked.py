"""Checks values by annotations: the settings of a config when it is made, and arguments of calls.

The kinds of a class or function are made once, at their first use. ``from_mapping`` reads texts by the same
kinds.
"""

import inspect
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from enum import IntEnum, IntFlag, StrEnum
from functools import cache, wraps
from operator import index
from typing import Any, TypeVar

from rmqtools.errors import ConfigError
from rmqtools.model.record import record
from rmqtools.unknown_name import unknown_name

C = TypeVar("C")

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_MOST_SHOWN = 200  # characters of a value
_OTHER_NAMES = {  # of settings in Kafka's clients and in RocketMQ's others
    "bootstrap_servers": "name_server",
    "brokers": "name_server",
    "endpoints": "name_server",
    "namesrv_addr": "name_server",
    "group_id": "group",
    "group_name": "group",
    "client_id": "instance_name",
    "auto_offset_reset": "consume_from",
    "enable_auto_commit": "auto_commit",
    "linger_ms": "linger",
    "retries": "retry_times_when_send_failed",
    "compression_type": "compression",
}


@record(kw_only=False)
class Kind:
    """One kind of values."""

    wanted: str
    """The values in words."""

    accept: Callable[[Any], Any]
    """Returns the value to store for one that a program gives; raises ValueError if it does not fit."""

    parse: Callable[[str], Any] = str
    """Returns the value that a text means, or raises ValueError."""

    written: str = "text"
    """The texts in words."""

    is_optional: bool = False
    """Whether None is accepted."""


def checked(config: type[C]) -> type[C]:
    """Make the constructor of a dataclass check its arguments first; a decorator.

    It raises ConfigError for an unknown name (with the nearest one), and for a value of another type.
    """
    make = config.__init__

    @wraps(make)
    def __init__(self: C, *values: object, **given: Any) -> None:
        if values:
            name = config.__name__
            raise ConfigError(f"{name} got {values[0]!r} without a name: want {name}(name=value, ...)")
        make(self, **_accepted(type(self), given))

    config.__init__ = __init__  # type: ignore[method-assign, assignment]  # with the same signature
    return config


def _accepted(config: type, given: Mapping[str, Any]) -> dict[str, Any]:
    kinds, shown = kinds_of(config), {one.name for one in fields(config) if one.repr}
    stored = {}
    for name, value in given.items():
        if (kind := kinds.get(name)) is None:
            raise ConfigError(unknown_setting(name, kinds))
        try:
            stored[name] = value if value is None and kind.is_optional else kind.accept(value)
        except ValueError:
            text = f"{name}={_short(value)}" if name in shown else f"{name} is {type(value).__name__}"
            rest = "; leave it out for the default" if value is None else ""
            raise ConfigError(f"{text}: want {kind.wanted}{rest}") from None
    return stored


def check_arguments(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Check the arguments of a call by the annotations of the function. It says itself which it lacks.

    Raises:
        ConfigError: a value of another type; names the argument.
    """
    signature, kinds = _kinds_of_call(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return
    for name, value in given.items():
        kind = kinds.get(name)
        if kind is None or (value is None and kind.is_optional):
            continue
        try:
            kind.accept(value)
        except ValueError:
            raise ConfigError(f"{function.__name__}({name}={_short(value)}): want {kind.wanted}") from None


def _short(value: object) -> str:
    """Return a value as an error shows it: lists may be long."""
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


@cache
def _kinds_of_call(function: Callable[..., Any]) -> tuple[inspect.Signature, Mapping[str, Kind]]:
    signature = inspect.signature(function)
    annotations = typing.get_type_hints(function)
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    single = [each.name for each in signature.parameters.values() if each.kind not in many]
    return signature, {name: kind_of(annotations[name]) for name in single if name in annotations}


def unknown_setting(name: str, known: Iterable[str]) -> str:
    """Return the text of an error about an unknown setting."""
    return unknown_name("setting", name, known, _OTHER_NAMES)


def kinds_of(config: type) -> Mapping[str, Kind]:
    """Return the kinds of a dataclass's fields by their names."""
    return _kinds_of_fields(config)


@cache
def _kinds_of_fields(config: type) -> Mapping[str, Kind]:
    annotations = typing.get_type_hints(config)
    return {one.name: kind_of(annotations[one.name], one.metadata.get("wanted")) for one in fields(config)}


@cache
def kind_of(annotation: Any, wanted: str | None = None) -> Kind:
    """Return the kind that an annotation means; ``wanted``: other words for its values."""
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    parts = typing.get_args(annotation) if is_union else (annotation,)
    choices = [choice for part in parts for choice in _choices_of(part)]
    kinds = [_one_of(choices)] if choices else []
    kinds += [_kind_of_class(part) for part in parts if part is not types.NoneType and not _choices_of(part)]

    def accept(value: object) -> object:
        for kind in kinds:
            try:
                return kind.accept(value)
            except ValueError:
                pass
        raise ValueError(value)

    words = wanted or " or ".join(dict.fromkeys(kind.wanted for kind in kinds))
    return Kind(words, accept, kinds[0].parse, kinds[0].written, types.NoneType in parts)


def _choices_of(part: Any) -> tuple[Any, ...]:
    """Return the values of an enumeration of texts or of a Literal; none for other types."""
    if isinstance(part, type) and issubclass(part, StrEnum):
        return tuple(part)
    return typing.get_args(part) if typing.get_origin(part) is typing.Literal else ()


def _one_of(choices: list[Any]) -> Kind:
    """Return the kind of some texts. A text is stored as the first choice equal to it: the enumeration's."""

    def accept(value: object) -> object:
        if not isinstance(value, str) or value not in choices:
            raise ValueError(value)
        return choices[choices.index(value)]

    return Kind(f"one of {', '.join(dict.fromkeys(map(str, choices)))}", accept)


def _kind_of_class(part: Any) -> Kind:
    owner = typing.get_origin(part) or part
    if owner in _LISTS:
        return _list_of(next(iter(typing.get_args(part)), object))
    if owner in _KINDS:
        return _KINDS[owner]
    if isinstance(owner, type) and issubclass(owner, IntEnum | IntFlag):
        return Kind(f"a {owner.__name__}", _accept_int)
    if not isinstance(owner, type) or getattr(owner, "_is_protocol", False):
        return Kind("another value", lambda value: value)
    return Kind(f"a {owner.__name__}", _instance_of(owner))


def _list_of(element: Any) -> Kind:
    """Return the kind of lists. A text is none: it would be taken for a list of its characters."""
    kind = kind_of(element)

    def accept(value: Any) -> Any:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError(value)
        for one in value if isinstance(value, Collection) else ():
            kind.accept(one)
        return value

    words = "texts" if element is str else f"{getattr(element, '__name__', 'value')} objects"
    return Kind(f"a list of {words}", accept)


def _instance_of(*wanted: type) -> Callable[[Any], Any]:
    def accept(value: object) -> object:
        if not isinstance(value, wanted):
            raise ValueError(value)
        return value

    return accept


def _accept_int(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(value)
    return value if isinstance(value, int) else index(value)


def _accept_float(value: Any) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise ValueError(value)
    return value if isinstance(value, int | float) else float(value)


def _accept_tuple(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        raise ValueError(value)
    return tuple(value)


def _accept_function(value: object) -> object:
    if not callable(value):
        raise ValueError(value)
    return value


def _parse_bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


def _parse_pairs(text: str) -> dict[str, str]:
    """``a=b,c=d`` as a mapping."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(key.strip() and value.strip() for key, _, value in pairs):
        raise ValueError(text)
    return {key.strip(): value.strip() for key, _, value in pairs}


_KINDS: dict[Any, Kind] = {
    str: Kind("text", _instance_of(str)),
    int: Kind("a whole number", _accept_int, int, "a whole number"),
    float: Kind("a number, e.g. 2.5; times are seconds", _accept_float, float, "seconds, e.g. 2.5"),
    bool: Kind("True or False", _instance_of(bool), _parse_bool, "true or false"),
    tuple: Kind("a tuple", _accept_tuple),
    os.PathLike: Kind("a path", _instance_of(os.PathLike)),
    Mapping: Kind("a mapping", _instance_of(Mapping), _parse_pairs, "from=to pairs separated by commas"),
    Callable: Kind("a function", _accept_function),
}
_LISTS = {Sequence, Collection, list}
"""The kinds of types: of generic ones by their origin, such as ``Mapping`` of ``Mapping[str, str]``."""
