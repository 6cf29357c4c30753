"""Makes frozen values four times as fast as their ``__init__``, which looks up each attribute."""

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from typing import Any, TypeVar

from rmqtools.compiled import twins

T = TypeVar("T")


def maker_of(value_class: type[T]) -> Callable[..., T]:
    """Return a function that makes a frozen dataclass with slots from the values of all fields.

    It fills an unfrozen twin of the class and then changes the object's class. The dataclass must not have
    a ``__post_init__``, and its defaults do not count.
    """
    names = tuple(field.name for field in fields(value_class))  # type: ignore[arg-type]
    twin = make_dataclass(value_class.__name__, names, slots=True)

    def make(*values: Any, **named: Any) -> Any:
        made = twin(*values, **named)
        made.__class__ = value_class
        return made

    return (twins and twins.maker_of(value_class, names, make)) or make
