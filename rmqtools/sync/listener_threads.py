"""Threads for blocking listeners. Calls and results cross between loop and threads in groups.

An executor makes and locks a future for every call and wakes the loop for each result. Here the threads take
calls from one queue, and a result wakes the loop only if no earlier result has just done so. The threads are
daemons: a listener that never returns does not stop the process from ending.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from rmqtools.engine.consumer.crossing import Crossing

_Job = tuple[Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]", "asyncio.Task[Any] | None"]
_Result = tuple["asyncio.Future[Any]", Any, Exception | None]


class ListenerThreads:
    """At most ``count`` threads, started when needed. Used from one event loop."""

    def __init__(self, count: int, name: str = "rmqtools-listener") -> None:
        self._count = count
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._ended: Crossing[_Result] = Crossing(self._take_results)
        self._busy = 0  # calls whose results have not been taken
        self._threads = 0
        self._waiting: dict[int, asyncio.Task[Any] | None] = {}  # by thread: the task that awaits its call

    def call(self, function: Callable[..., Any], *arguments: object) -> "asyncio.Future[Any]":
        """On the loop: let a thread run ``function``; its result can be awaited.

        Every error of it, SystemExit and StopIteration too, arrives as an Exception.
        """
        self._ended.open()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._busy += 1
        if self._threads < min(self._busy, self._count):
            self._start_thread()
        self._jobs.put((function, arguments, future, asyncio.current_task(loop)))
        return future

    def waiting_task(self) -> "asyncio.Task[Any] | None":
        """The task that awaits the calling thread's call; None: not one of these threads."""
        return self._waiting.get(threading.get_ident())

    def close(self) -> None:
        """Let the threads end after their current call; calls that have not begun are dropped."""
        with contextlib.suppress(Empty):
            while True:
                self._jobs.get_nowait()
        for _ in range(self._threads):
            self._jobs.put(None)

    def _start_thread(self) -> None:
        self._threads += 1
        name = f"{self._name}-{self._threads}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        ident, waiting = threading.get_ident(), self._waiting
        while (job := self._jobs.get()) is not None:
            function, arguments, future, waiting[ident] = job
            result, error = None, None
            try:
                result = function(*arguments)
            except BaseException as raised:  # noqa: BLE001 - a user's callback; its awaiter gets the error
                error = _as_error(raised)
            self._ended.put((future, result, error))

    def _take_results(self, results: list[_Result]) -> None:
        for future, result, error in results:
            self._busy -= 1
            if future.done():  # it was cancelled
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


def _as_error(raised: BaseException) -> Exception:
    """Turn an error into one that may pass through futures and coroutines without ending loop or process."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    error = RuntimeError(f"the listener raised {raised!r}")
    error.__cause__ = raised
    return error
