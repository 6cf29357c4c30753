"""Runs work once for all callers that need it at the same time.

Several callers share one connection attempt or one route fetch (``engine.connection.single_flight``). If
closing ends it, they must not get a ``CancelledError``, because nobody cancelled them. If all callers have
given up, a failure must still be retrieved, or asyncio logs it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from rmqtools.errors import ClientStateError

T = TypeVar("T")

_CLOSE_GRACE = 1.0  # seconds


class SharedWork(Generic[T]):
    """Runs one coroutine per key at a time. A caller that is cancelled does not end it for the others."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}
        self._closed = False

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the coroutine that runs under ``key``; if there is none, of ``work()``.

        Raises:
            ClientStateError: closed before or during the work.
        """
        if self._closed:
            raise ClientStateError("the client is closed")
        if (task := self._tasks.get(key)) is None:
            task = self._tasks[key] = asyncio.create_task(work())
            task.add_done_callback(lambda ended: self._ended(key, ended))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as error:
            waiting = asyncio.current_task()
            if task.cancelled() and self._closed and not (waiting and waiting.cancelling()):
                raise ClientStateError("the client was closed meanwhile") from error
            raise

    async def close(self) -> None:
        """Cancel running work; its callers get an error. A second call does nothing."""
        self._closed = True
        if tasks := list(self._tasks.values()):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_CLOSE_GRACE)

    def _ended(self, key: Hashable, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # retrieve the error: all callers may have been cancelled
