"""Converts typed headers to the text fields of a command and back.

A header class is a record. Annotations say how a field is written: ``str``, ``bool``, an Enum
by its name, :data:`Int32` or :data:`Int64` in decimal. The wire name is the field's name in camelCase unless
:class:`Wire` gives another. A field without default is required.
Source of the rule: RemotingCommand.makeCustomHeaderToNet and decodeCommandCustomHeader (Java client).
"""

import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import lru_cache, partial
from operator import attrgetter
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from rmqtools.compiled import twins
from rmqtools.errors import ProtocolError
from rmqtools.model.codes import RequestCode
from rmqtools.model.record import record


@dataclass(frozen=True, slots=True)
class Wire:
    """Annotation: the field's name on the wire if it is not the camelCase name."""

    name: str


@dataclass(frozen=True, slots=True)
class _Bits:
    """Annotation: the number of bits of the number in Java."""

    count: int


Int32 = Annotated[int, _Bits(32)]
Int64 = Annotated[int, _Bits(64)]


@record
class Header:
    """The base of all headers; response headers inherit from it directly."""

    fast: ClassVar[bool] = False  # Java's hand-written codec of this class knows only its own fields

    def check_decoded(self) -> None:
        """Raise a ProtocolError for values that Java's checkFields refuses; called after decoding."""


@record
class RequestHeader(Header):
    """A request's header. ``code`` is its usual request code."""

    code: ClassVar[RequestCode]


@record
class RpcRequestHeader(RequestHeader):
    """A request that a proxy may forward: namespace, whether names include it, broker name, oneway."""

    ns: str | None = None
    nsd: bool | None = None
    bname: str | None = None
    oway: bool | None = None


@record
class TopicRequestHeader(RpcRequestHeader):
    """A request about a topic. ``lo``: the queue id is logical (static topics)."""

    lo: bool | None = None


H = TypeVar("H", bound=Header)


class HeaderField(NamedTuple):
    """The wire form of one header field. ``put`` writes its slot; ``default`` is MISSING if required."""

    name: str
    wire: str
    parse: Callable[[str], Any]
    put: Callable[[Any, Any], None]
    default: Any

    @property
    def required(self) -> bool:
        """True if the field must be present."""
        return self.default is MISSING


class _Plan(NamedTuple):
    fields: tuple[HeaderField, ...]
    unread: tuple[HeaderField, ...]  # never on the wire, so they keep their defaults
    wires: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]
    read: Callable[[Mapping[str, str | None]], Any] | None  # the compiled twin of decode_header; None: none


def encode_header(header: Header) -> dict[str, str]:
    """Write a header as text fields; None is left out."""
    plan = _plan_of(type(header), own_only=False)
    return {
        wire: value if type(value) is str else _format_value(value)
        for wire, value in zip(plan.wires, plan.values(header), strict=True)
        if value is not None
    }


def decode_header(header_class: type[H], ext_fields: Mapping[str, str | None]) -> H:
    """Make a header from text fields; unknown fields are ignored.

    Raises:
        ProtocolError: a required field is missing, or a text has the wrong form.
    """
    plan = _plan_of(header_class, own_only=header_class.fast)
    if twins is not None and plan.read is not None:
        plain: H | None = plan.read(ext_fields)
        if plain is not None:
            if header_class.check_decoded is not Header.check_decoded:
                plain.check_decoded()
            return plain
    header = header_class.__new__(header_class)  # filled slot by slot: __init__ would take twice as long
    for name, wire, parse, put, default in plan.fields:
        text = ext_fields.get(wire)
        if text is not None:
            try:
                put(header, text if parse is str else parse(text))
            except ValueError as error:
                raise ProtocolError(f"{header_class.__name__}.{name} ({wire}): {error}") from None
        elif default is not MISSING:
            put(header, default)
        else:
            raise ProtocolError(f"{header_class.__name__}.{name} ({wire}) is missing")
    for unread in plan.unread:
        unread.put(header, unread.default)
    header.check_decoded()
    return header


def header_fields(header_class: type[Header]) -> tuple[HeaderField, ...]:
    """Return the fields of a header class, inherited ones first."""
    return _plan_of(header_class, own_only=False).fields


def camel_case(name: str) -> str:
    """``queue_id`` -> ``queueId``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def parse_int(text: str, bits: int) -> int:
    """Parse a decimal like Java's parseInt and parseLong: a sign is allowed, blanks and underscores are not.

    Raises:
        ValueError: another form, or a number that needs more bits.
    """
    if len(text) < _SAFE_DIGITS[bits] and text.isdecimal() and text.isascii():
        return int(text)  # nearly always
    if len(text) <= _MAX_DIGITS and _DECIMAL.fullmatch(text):
        value = int(text)
        if -1 << bits - 1 <= value < 1 << bits - 1:
            return value
    raise ValueError(f"{text[:100]!r} is no {bits}-bit integer")


def parse_ints(texts: Sequence[str], bits: int) -> tuple[int, ...]:
    """Parse each text as :func:`parse_int` does; short plain numbers in a third of the time."""
    if (
        max(map(len, texts)) < _SAFE_DIGITS[bits]
        and all(map(str.isdecimal, texts))
        and all(map(str.isascii, texts))
    ):
        return tuple(map(int, texts))
    return tuple(parse_int(text, bits) for text in texts)


_SAFE_DIGITS = {32: 10, 64: 19}  # numbers with fewer digits fit into this many bits
_DECIMAL = re.compile(r"[+-]?[0-9]+")
_MAX_DIGITS = 100  # leading zeros are legal, but int() of a megabyte of digits would be slow


def _parse_int32(text: str) -> int:
    return parse_int(text, 32)


@lru_cache(maxsize=1024)  # most offsets of an answer equal those of the previous answer
def _parse_int64(text: str) -> int:
    return parse_int(text, 64)


def _parse_bool(text: str) -> bool:
    """Parse like Java's parseBoolean: every text but "true" is false."""
    return text.lower() == "true"


def _parse_enum(enum_class: type[Enum], text: str) -> Enum | None:
    """None for a name that this version does not know: a newer peer may send one."""
    return enum_class.__members__.get(text.upper())


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    return str(value.name) if isinstance(value, Enum) else str(value)


_reader_of: Callable[..., Any] = (lambda *_: None) if twins is None else twins.reader_of
_plans: dict[tuple[type[Header], bool], _Plan] = {}  # made at the first use of a class


def _plan_of(header_class: type[Header], *, own_only: bool) -> _Plan:
    plan = _plans.get((header_class, own_only))
    if plan is None:
        plan = _plans[header_class, own_only] = _make_plan(header_class, own_only)
    return plan


def _make_plan(header_class: type[Header], own_only: bool) -> _Plan:
    hints = typing.get_type_hints(header_class, include_extras=True)
    inherited = {f.name for f in fields(TopicRequestHeader)} if own_only else set()
    every = [
        HeaderField(
            f.name, *_wire_form(f.name, hints[f.name]), getattr(header_class, f.name).__set__, f.default
        )
        for f in fields(header_class)
    ]
    made = tuple(field for field in every if field.name not in inherited)
    unread = tuple(field for field in every if field.name in inherited)
    return _Plan(
        made,
        unread,
        tuple(field.wire for field in made),
        _values_getter([field.name for field in made]),
        None if unread else _reader_of(header_class, made, _parse_int32, _parse_int64, MISSING),
    )


def _values_getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda header: tuple(getattr(header, name) for name in names)


def _wire_form(name: str, hint: Any) -> tuple[str, Callable[[str], Any]]:
    """Return a field's name on the wire and the function that parses its text."""
    base, notes = _unwrap(hint)
    wire = next((note.name for note in notes if isinstance(note, Wire)), camel_case(name))
    bits = next((note.count for note in notes if isinstance(note, _Bits)), 64)
    if base is bool:
        return wire, _parse_bool
    if base is int:
        return wire, _parse_int32 if bits == 32 else _parse_int64
    if issubclass(base, Enum):
        return wire, partial(_parse_enum, base)
    return wire, str


def _unwrap(hint: Any) -> tuple[Any, tuple[object, ...]]:
    """``Annotated[Int32 | None, Wire("e")]`` -> ``int`` and its notes."""
    if typing.get_origin(hint) is Annotated:
        base, *notes = typing.get_args(hint)
        inner, more = _unwrap(base)
        return inner, (*notes, *more)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return _unwrap(next(arg for arg in typing.get_args(hint) if arg is not type(None)))
    return hint, ()
