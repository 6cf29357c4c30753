"""Carries results from listener threads to the event loop, many at once."""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import repeat
from typing import Generic, TypeVar

T = TypeVar("T")


class Crossing(Generic[T]):
    """What threads put here the loop takes, in order.

    Waking the loop costs more than a short listener call. So a result wakes it only if no earlier result has
    just done so, and the loop takes all that have come until then.
    """

    def __init__(self, handle: Callable[[list[T]], None]) -> None:
        """``handle`` is called on the loop with one result or more."""
        self._handle = handle
        self._loop: asyncio.AbstractEventLoop | None = None
        self._came: deque[T] = deque()
        self._is_loop_told = False

    def open(self) -> None:
        """On the loop: let results come to this loop. To be called before the first :meth:`put`."""
        self._loop = asyncio.get_running_loop()

    def put(self, result: T) -> None:
        """Add a result. Safe on any thread."""
        self._came.append(result)
        if not self._is_loop_told:  # after the append: the loop clears it before it looks
            self._is_loop_told = True
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self.take)

    def take(self) -> None:
        """On the loop: handle everything that has come."""
        self._is_loop_told = False
        results = [*map(deque.popleft, repeat(self._came, len(self._came)))]
        if results:
            self._handle(results)
