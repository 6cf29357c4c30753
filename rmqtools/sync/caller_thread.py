"""Runs callbacks on the thread that waits in a blocking call.

A local transaction belongs on the caller's thread, as in Java: database sessions are often bound to a thread.
"""

import asyncio
import queue
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from rmqtools.sync.listener_threads import as_error
from rmqtools.sync.loop import Call

T = TypeVar("T")

_Job = tuple[Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]"]


class CallerThread(Call[T]):
    """One blocking call: the loop passes callbacks on, and the calling thread runs them while it waits."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(make, loop)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

    def call(self, function: Callable[..., Any], *arguments: object) -> Awaitable[Any]:
        """On the loop: let the waiting thread run ``function``; its result can be awaited."""
        done: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put((function, arguments, done))
        return done

    def _wait(self) -> None:
        """Run the callbacks passed on until the call has ended."""
        while (job := self._jobs.get()) is not None:
            self._run_job(*job)

    def _end(self) -> None:
        self._jobs.put(None)

    def _run_job(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], done: "asyncio.Future[Any]"
    ) -> None:
        try:
            result, error = function(*arguments), None
        except Exception as raised:  # noqa: BLE001 - a user's callback; its awaiter gets the error
            result, error = None, as_error(raised)
        self._loop.call_soon_threadsafe(_complete, done, result, error)


def _complete(done: "asyncio.Future[Any]", result: Any, error: Exception | None) -> None:
    if done.done():  # the call was cancelled
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
