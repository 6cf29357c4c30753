"""Marks for the blocking classes: ``python -m tools.blocking_classes`` writes them from the asyncio classes.

It writes the signature of each public method, its docstring and one line of one of these forms:

    form     line, here of a producer                                   for
    run      return self._bridge.run(lambda: self._producer.recall(...)) coroutines (default)
    iterate  return self._bridge.iterate(self._admin.read(...))         functions that return an asynchronous
                                                                        iterator (default)
    direct   return self._producer.broker_health()                      functions safe on any thread,
                                                                        properties
    call     self._bridge.call(lambda: self._consumer.pause(...))       other functions: they run on the loop
    sends    return self._sends.send(...)                               sends on the calling thread
    base     return super().close()                                     methods of which the handwritten base
                                                                        class has more than one line
    by_hand  none                                                       methods that the base class has whole
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
Form = Literal["run", "iterate", "direct", "call", "sends", "base", "by_hand"]

START_NOTE = "An interrupted start (Ctrl-C) closes it."
INTERRUPT_NOTE = "Interrupting a call ends only its waiting."
CLOSE_NOTE = f"May be called at any time, in any state. {INTERRUPT_NOTE}"


class Mark(NamedTuple):
    """The mark of one method."""

    form: Form | None = None
    note: str = ""


_marks: dict[object, Mark] = {}


def blocking(form: Form | None = None, *, note: str = "") -> Callable[[F], F]:
    """Mark a public method of an asyncio class.

    Args:
        form: the form of the blocking method's line; None: the default of its kind.
        note: a paragraph that only the docstring of the blocking method has.
    """

    def mark(function: F) -> F:
        _marks[function] = Mark(form, note)
        return function

    return mark


def mark_of(function: object) -> Mark:
    """Return the mark of a method; an empty one if it has none."""
    return _marks.get(getattr(function, "__wrapped__", function), Mark())
