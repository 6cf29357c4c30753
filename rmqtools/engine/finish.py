"""Runs a coroutine on a thread without an event loop."""

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that does not suspend; return its result or raise its error."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise AssertionError(f"{coroutine} has suspended on a thread, and nothing would resume it")
