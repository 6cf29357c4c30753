"""Frozen dataclasses that cost little to define: their methods are shared, not generated for each class.

``@dataclass`` compiles a handful of functions for every class, most of the time of importing a module of
headers. Of those classes, a process uses a few, so what counts is the time to define them. A record takes
about twice as long to create as a frozen dataclass. Classes that are created for each message are no records.
"""

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, NamedTuple, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a frozen dataclass with slots and keyword-only fields. Its bases must be records, too."""
    for name, method in _METHODS.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)


class _Slot(NamedTuple):
    """A field: how it is written and its default; MISSING: none."""

    name: str
    put: Callable[[object, Any], None]
    default: Any
    factory: Any


_slots: dict[type, tuple[_Slot, ...]] = {}  # made at the first use of a class


def _slots_of(cls: type) -> tuple[_Slot, ...]:
    found = _slots.get(cls)
    if found is None:
        every: Any = fields(cls)
        found = tuple(
            _Slot(f.name, getattr(cls, f.name).__set__, f.default, f.default_factory) for f in every
        )
        _slots[cls] = found
    return found


def _values(self: object) -> tuple[Any, ...]:
    return tuple([getattr(self, slot.name) for slot in _slots_of(type(self))])


def _init(self: Any, **given: Any) -> None:
    for name, put, default, factory in _slots_of(type(self)):
        if name in given:
            put(self, given.pop(name))
        elif default is not MISSING:
            put(self, default)
        elif factory is not MISSING:
            put(self, factory())
        else:
            raise TypeError(f"{type(self).__qualname__}() is missing the keyword-only argument {name!r}")
    if given:
        raise TypeError(
            f"{type(self).__qualname__}() got an unexpected keyword argument {next(iter(given))!r}"
        )
    if (check := getattr(self, "__post_init__", None)) is not None:
        check()


def _repr(self: object) -> str:
    pairs = ", ".join(f"{slot.name}={getattr(self, slot.name)!r}" for slot in _slots_of(type(self)))
    return f"{type(self).__qualname__}({pairs})"


def _eq(self: object, other: object) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(_values(self))


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
}
