"""Carries results from listener threads to the event loop, many at once."""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import repeat
from typing import Generic, TypeVar

T = TypeVar("T")


class Crossing(Generic[T]):
    """Calls from threads, which the loop runs in order.

    Waking the loop costs more than a short listener call. So a result wakes it only if no earlier result has
    just done so, and the loop takes all that have come until then.

    Attributes:
        is_told: the loop knows that something has come.
    """

    def __init__(self, handle: Callable[[list[T]], None]) -> None:
        """``handle`` is called on the loop with one result or more."""
        self._handle = handle
        self._wake: Callable[[Callable[[], None]], object] | None = None
        self._came: deque[T] = deque()
        self.is_told = False

    def open(self, *, from_threads: bool = True) -> None:
        """On the loop: let results come to this loop. To be called before the first :meth:`put`.

        ``from_threads``: False: only the loop's own tasks put results; then no system call wakes it.
        """
        loop = asyncio.get_running_loop()
        self._wake = loop.call_soon_threadsafe if from_threads else loop.call_soon

    def put(self, result: T) -> None:
        """Add a result. Safe on any thread."""
        self._came.append(result)
        if not self.is_told:  # after the append: the loop clears it before it looks
            self.is_told = True
            assert self._wake is not None
            self._wake(self.take)

    def take(self) -> None:
        """On the loop: handle everything that has come."""
        self.is_told = False
        results = [*map(deque.popleft, repeat(self._came, len(self._came)))]
        if results:
            self._handle(results)
