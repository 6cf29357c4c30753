"""Frozen values for a quarter of the price: ``__init__`` of a frozen class looks up each attribute."""

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def maker_of(value_class: type[T]) -> Callable[..., T]:
    """What makes values of a frozen dataclass with slots, from those of all its fields, in their order.

    They are made as values of a twin that is not frozen, and then declared to be what they are. For a class
    without ``__post_init__``.
    """
    names = [field.name for field in fields(value_class)]  # type: ignore[arg-type]
    twin = make_dataclass(value_class.__name__, names, slots=True)

    def make(*values: Any) -> Any:
        made = twin(*values)
        made.__class__ = value_class
        return made

    return make
