"""Frozen dataclasses that cost little to define: their methods are shared, not generated for each class.

``@dataclass`` compiles a handful of functions for every class, most of the time of importing a module of
headers or settings. Of those classes, a process uses a few, so what counts is the time to define them. A
record takes about twice as long to create as a frozen dataclass. Classes that are created for each message,
request or answer are no records.
"""

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    from inspect import Signature

T = TypeVar("T")


@overload
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T], /) -> type[T]: ...


@overload
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[Any] | None = None, /, *, kw_only: bool = True) -> Any:
    """Make a frozen dataclass with slots; a decorator. Its bases must be records, too.

    ``kw_only``: fields are given by name only; False: by place or name.
    """
    if cls is None:
        return lambda cls: _record(cls, kw_only=kw_only)
    return _record(cls, kw_only=kw_only)


def _record(cls: type[T], *, kw_only: bool) -> type[T]:
    for name, method in _METHODS.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)


class _Slot(NamedTuple):
    """A field: how it is written, its default (MISSING: none), and what it is used for."""

    name: str
    put: Callable[[object, Any], None]
    default: Any
    factory: Any
    kw_only: bool
    shown: bool
    compared: bool


_slots: dict[type, tuple[_Slot, ...]] = {}  # made at the first use of a class


def _slots_of(cls: type) -> tuple[_Slot, ...]:
    found = _slots.get(cls)
    if found is None:
        every: Any = fields(cls)
        found = tuple(
            _Slot(
                f.name,
                getattr(cls, f.name).__set__,
                f.default,
                f.default_factory,
                f.kw_only,
                f.repr,
                f.compare,
            )
            for f in every
        )
        _slots[cls] = found
    return found


def _values(self: object) -> tuple[Any, ...]:
    return tuple([getattr(self, slot.name) for slot in _slots_of(type(self))])


def _compared(self: object) -> tuple[Any, ...]:
    return tuple([getattr(self, slot.name) for slot in _slots_of(type(self)) if slot.compared])


def _init(self: Any, *values: Any, **given: Any) -> None:
    if values:
        given = _by_name(type(self), values, given)
    for name, put, default, factory, *_ in _slots_of(type(self)):
        if name in given:
            put(self, given.pop(name))
        elif default is not MISSING:
            put(self, default)
        elif factory is not MISSING:
            put(self, factory())
        else:
            raise TypeError(f"{type(self).__qualname__}() is missing the argument {name!r}")
    if given:
        raise TypeError(
            f"{type(self).__qualname__}() got an unexpected keyword argument {next(iter(given))!r}"
        )
    if (check := getattr(self, "__post_init__", None)) is not None:
        check()


def _by_name(cls: type, values: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    names = [slot.name for slot in _slots_of(cls) if not slot.kw_only]
    if len(values) > len(names):
        wanted = f"takes {len(names)} arguments by place" if names else "takes arguments by name only"
        raise TypeError(f"{cls.__qualname__}() {wanted}, and got {len(values)}")
    placed = dict(zip(names, values, strict=False))
    if twice := placed.keys() & given.keys():
        raise TypeError(f"{cls.__qualname__}() got the argument {min(twice)!r} twice")
    return placed | given


class _SignatureOf:
    """The signature of a record's class, which its shared constructor does not have."""

    def __get__(self, _: object, cls: Any) -> "Signature":
        from inspect import Parameter, Signature

        parameters = []
        for one in sorted(fields(cls), key=lambda one: one.kw_only is True):
            kind = Parameter.KEYWORD_ONLY if one.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            default = one.default
            if default is MISSING:
                default = Parameter.empty if one.default_factory is MISSING else ...
            parameters.append(Parameter(one.name, kind, default=default, annotation=one.type))
        return Signature(parameters, return_annotation=None)


def _repr(self: object) -> str:
    pairs = [f"{one.name}={getattr(self, one.name)!r}" for one in _slots_of(type(self)) if one.shown]
    return f"{type(self).__qualname__}({', '.join(pairs)})"


def _eq(self: object, other: object) -> Any:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(_compared(self))


def _refuse(self: object, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _reduce(self: object) -> tuple[Any, ...]:
    return _filled, (type(self), _values(self))


def _filled(cls: type[T], values: tuple[Any, ...]) -> T:
    made = cls.__new__(cls)
    for slot, value in zip(_slots_of(cls), values, strict=True):
        slot.put(made, value)
    return made


_METHODS: dict[str, Any] = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__reduce__": _reduce,
    "__signature__": _SignatureOf(),
}
