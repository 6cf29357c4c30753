"""Threads for blocking listeners. Calls and results cross between loop and threads in groups.

An executor makes and locks a future for every call and wakes the loop for each result. Here the threads take
calls from one queue, and a result wakes the loop only if no earlier result has just done so. The threads are
daemons: a listener that never returns does not stop the process from ending.

Listeners that return at once are called by one thread: more would only wait for the GIL
(docs/decisions/0033).
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from rmqtools.engine.consumer.crossing import Crossing
from rmqtools.engine.consumer.listeners import Pace

_LOOK_INTERVAL: Final = 0.010  # seconds; a thread may wait for half of it until it gets the GIL

_Job = tuple[Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]", "asyncio.Task[Any] | None"]
_Result = tuple["asyncio.Future[Any]", Any, Exception | None]


class ListenerThreads:
    """At most ``count`` threads, started when needed. Used from one event loop.

    With a ``pace``, jobs of listeners that return at once share one thread, until no call ends for a while.
    """

    def __init__(self, count: int, name: str = "rmqtools-listener", *, pace: Pace | None = None) -> None:
        self._count = count
        self._name = name
        self._pace = pace
        self._ended: Crossing[_Result] = Crossing(self._take_results)
        self._threads = 0
        self._wakes: queue.SimpleQueue[bool] = queue.SimpleQueue()  # idle threads take one each; False: end
        self._lock = threading.Lock()  # of the following three
        self._jobs: deque[_Job] = deque()
        self._active = 0  # threads that are not idle
        self._width = count  # how many may be active
        self._look: asyncio.TimerHandle | None = None
        self._was_still = False  # no call had ended at the last look
        self._waiting: dict[int, asyncio.Task[Any] | None] = {}  # by thread: the task that awaits its call

    def call(self, function: Callable[..., Any], *arguments: object) -> "asyncio.Future[Any]":
        """On the loop: let a thread run ``function``; its result can be awaited.

        Every error of it, SystemExit and StopIteration too, arrives as an Exception.
        """
        self._ended.open()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            self._jobs.append((function, arguments, future, asyncio.current_task(loop)))
            has_company = self._active > 0
        self._wake_threads()
        if has_company and self._pace is not None and self._look is None:
            self._look = loop.call_later(_LOOK_INTERVAL, self._look_at_pace, self._pace)
        return future

    def waiting_task(self) -> "asyncio.Task[Any] | None":
        """Return the task that awaits the calling thread's call; None: not one of these threads."""
        return self._waiting.get(threading.get_ident())

    def close(self) -> None:
        """Let the threads end after their current call; calls that have not begun are dropped."""
        with self._lock:
            self._jobs.clear()
        for _ in range(self._threads):
            self._wakes.put(False)

    def _wake_threads(self) -> None:
        """Let as many threads take jobs as there are jobs and may be active."""
        with self._lock:
            more = max(0, min(len(self._jobs), self._width - self._active))
            self._active += more
            new = max(0, self._active - self._threads)
        for _ in range(more - new):
            self._wakes.put(True)
        for _ in range(new):
            self._start_thread()

    def _start_thread(self) -> None:
        self._threads += 1
        name = f"{self._name}-{self._threads}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _look_at_pace(self, pace: Pace) -> None:
        """Let one thread be active if calls are short, all if they are not or none ends."""
        self._look = None
        are_short = pace.look()
        is_still, self._was_still = self._was_still and are_short is None, are_short is None
        with self._lock:
            if are_short is not None or is_still:
                self._width = 1 if are_short else self._count
            waits = bool(self._jobs)
        if waits:
            self._wake_threads()
            self._look = asyncio.get_running_loop().call_later(_LOOK_INTERVAL, self._look_at_pace, pace)

    def _run(self) -> None:
        ident, waiting = threading.get_ident(), self._waiting
        is_awake = True
        while is_awake:
            job = self._next()
            while job is not None:
                function, arguments, future, waiting[ident] = job
                result, error = None, None
                try:
                    result = function(*arguments)
                except BaseException as raised:  # noqa: BLE001 - a user's callback; its awaiter gets the error
                    error = as_error(raised)
                job = self._next()  # before the loop gets the result: it may have another job at once
                self._ended.put((future, result, error))
            is_awake = self._wakes.get()

    def _next(self) -> _Job | None:
        """Return the next job; None: the thread is idle now."""
        with self._lock:
            if self._jobs and self._active <= self._width:
                return self._jobs.popleft()
            self._active -= 1
            return None

    def _take_results(self, results: list[_Result]) -> None:
        for future, result, error in results:
            if future.done():  # it was cancelled
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


def as_error(raised: BaseException) -> Exception:
    """Turn an error into one that may pass through futures and coroutines without ending loop or process."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    error = RuntimeError(f"the listener raised {raised!r}")
    error.__cause__ = raised
    return error
