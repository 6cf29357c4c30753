"""Makes values of dataclasses fast: the ``__init__`` of a frozen one takes four times as long."""

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from functools import cache
from typing import Any, ParamSpec, TypeVar

from rmqtools.compiled import twins

P = ParamSpec("P")
T = TypeVar("T")


def maker_of(value_class: Callable[P, T]) -> Callable[P, T]:
    """Return a function that makes a dataclass with slots from the values of all fields.

    For a frozen one it fills an unfrozen copy of the class and then changes the object's class. The dataclass
    must not have a ``__post_init__``. Each field needs a value, also one with a default.
    """
    names = tuple(field.name for field in fields(value_class))  # type: ignore[arg-type]
    is_frozen = value_class.__dataclass_params__.frozen  # type: ignore[attr-defined]
    unfrozen = cache(lambda: make_dataclass(value_class.__name__, names, slots=True))

    def make_frozen(*values: Any, **named: Any) -> Any:
        made = unfrozen()(*values, **named)
        made.__class__ = value_class
        return made

    make = make_frozen if is_frozen else value_class
    return (twins and twins.maker_of(value_class, names, make)) or make
