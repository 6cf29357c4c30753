"""Runs callbacks on the thread that waits in a blocking call.

A local transaction belongs on the caller's thread, as in Java: database sessions are often bound to a thread.
"""

import asyncio
import queue
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_Job = tuple[Callable[..., Any], tuple[Any, ...], "Future[Any]"]


class CallerThread:
    """One blocking call: the loop passes callbacks on, and the calling thread runs them while it waits."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

    def call(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        """On the loop: let the waiting thread run ``function``; its result can be awaited."""
        done: Future[T] = Future()
        self._jobs.put((function, arguments, done))
        return asyncio.wrap_future(done)

    def wait(self, future: "Future[T]") -> T:
        """On the calling thread: run the callbacks passed on until ``future`` is done; return its result."""
        future.add_done_callback(lambda _: self._jobs.put(None))
        try:
            while (job := self._jobs.get()) is not None:
                _run(*job)
            return future.result()
        except BaseException:
            future.cancel()
            raise


def _run(function: Callable[..., Any], arguments: tuple[Any, ...], done: "Future[Any]") -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        result = function(*arguments)
    except Exception as error:  # noqa: BLE001 - a user's callback; its awaiter gets the error
        done.set_exception(error)
    except BaseException:
        done.set_exception(asyncio.CancelledError())  # Ctrl-C ends the call, never the loop
        raise
    else:
        done.set_result(result)
