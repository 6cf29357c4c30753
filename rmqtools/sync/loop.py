"""The calls, futures and iterators by which blocking callers use the loop thread.

After a fork, a client made by the parent refuses to be used in the child: its sockets are shared with the
parent.

The garbage collector ends an abandoned iterator on any thread, also on the loop's, and at the end of the
interpreter, when the loop thread no longer runs. So nothing may wait there.
"""

import asyncio
import os
import sys
import threading
from asyncio import _get_running_loop
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from operator import attrgetter
from typing import Any, Generic, TypeVar

from rmqtools.errors import ClientStateError
from rmqtools.log import get_logger
from rmqtools.sync.greenlets import are_threads_greenlets
from rmqtools.sync.loop_thread import THREADS, LoopThread

T = TypeVar("T")

log = get_logger(__name__)

_noted: list[str] = []  # the first call in a thread with a running event loop


def note_blocking_call() -> None:
    """Log, once per process, that a call blocks a thread with a running event loop: all its tasks wait.

    In a notebook cells run on such a loop, and nothing else does. Greenlets share one thread with our own
    loop, and a wait of one lets the others run.
    """
    if _get_running_loop() is None or _noted or "ipykernel" in sys.modules or are_threads_greenlets():
        return
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("rmqtools."):
        frame = frame.f_back
    _noted.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
    log.warning("event_loop_blocked", called_at=_noted[0], remedy="use rmqtools.aio, or asyncio.to_thread")


class Call(Generic[T]):
    """A coroutine that one thread waits for while the loop thread runs it.

    Uses a lock and two callbacks: a future of ``run_coroutine_threadsafe`` would cost 20 us more for
    each blocking send. The loop thread makes the coroutine: an interrupt leaves none behind.
    """

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop) -> None:
        self._make = make
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._is_wanted = True
        self._ended = threading.Lock()
        self._ended.acquire()

    def _wait(self) -> None:
        """Wait on the calling thread until :meth:`_end` was called on the loop."""
        self._ended.acquire()

    def _end(self) -> None:
        self._ended.release()

    def run(self) -> T:
        """Run the coroutine; return its result or raise its error. An interrupt cancels it."""
        note_blocking_call()
        try:
            self._loop.call_soon_threadsafe(self._begin)
            self._wait()
        except BaseException:
            self._is_wanted = False
            self._loop.call_soon_threadsafe(self._cancel)
            raise
        task, self._task = self._task, None
        assert task is not None
        try:
            if task.cancelled():
                raise CancelledError  # that of concurrent.futures: asyncio's is not an Exception
            return task.result()
        finally:
            del task  # an error's traceback holds this frame, and the task holds the error

    def _begin(self) -> None:
        if self._is_wanted:
            self._task = self._loop.create_task(self._called())
            self._task.add_done_callback(lambda _: self._end())

    async def _called(self) -> T:
        return await self._make()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.add_done_callback(_look_at)  # its error is no longer needed
            self._task.cancel()


class _Condition(threading.Condition):
    """A condition whose ``with`` calls only functions of its lock, which are written in C.

    Those of ``Condition`` are written in Python. A signal's handler that raises in them leaves the lock
    acquired for ever, and the loop thread would wait for it.
    """

    __enter__ = property(attrgetter("_lock.__enter__"))
    __exit__ = property(attrgetter("_lock.__exit__"))


class CallFuture(Future[T]):
    """A future that the loop thread can always complete, wherever a thread that waits was interrupted.

    Threads wait for locks of their own, not for the condition: an interrupt in ``Condition.wait`` may come
    when its lock is released, and would end in a RuntimeError.
    """

    def __init__(self) -> None:
        super().__init__()
        self._condition = _Condition()
        self._gates: set[threading.Lock] = set()  # of threads that wait
        self._opens = False

    def result(self, timeout: float | None = None) -> T:
        """See :meth:`concurrent.futures.Future.result`."""
        self._wait(timeout)
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """See :meth:`concurrent.futures.Future.exception`."""
        self._wait(timeout)
        return super().exception()

    def _wait(self, timeout: float | None) -> None:
        gate = threading.Lock()
        gate.acquire()
        self._gates.add(gate)
        if not self._opens:
            self.add_done_callback(self._open)  # at once, if it is done; twice does no harm
            self._opens = True
        is_done = self.done() or gate.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
        self._gates.discard(gate)
        if not is_done:
            raise TimeoutError

    def _open(self, _: object) -> None:
        for gate in self._gates.copy():
            with suppress(RuntimeError):  # it is open
                gate.release()


def chain(source: asyncio.Future[T], future: Future[T]) -> None:
    """Give a caller's future the result or error of ``source``; cancelling it cancels ``source``."""
    loop = source.get_loop()

    def cancel(_: object) -> None:
        if future.cancelled() and not loop.is_closed():
            loop.call_soon_threadsafe(source.cancel)

    source.add_done_callback(lambda _: _pass_on(source, future))
    future.add_done_callback(cancel)


def _pass_on(source: asyncio.Future[T], future: Future[T]) -> None:
    if source.cancelled():
        future.cancel()
    if not future.set_running_or_notify_cancel():
        return
    error = source.exception()
    if error is None:
        future.set_result(source.result())
    else:
        future.set_exception(error)


class Bridge:
    """Runs the engine's coroutines for blocking callers. One per client; safe to share between threads."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def is_of_this_process(self) -> bool:
        """Return whether the client was made in this process and not inherited through a fork."""
        return os.getpid() == self._pid

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine that ``make`` returns, on the loop thread, and wait for it.

        Raises:
            ClientStateError: in a forked child of the process that made the client, on the loop thread, or
                while the interpreter shuts down.
        """
        return Call(make, self._thread().loop).run()

    def take(
        self,
        ready: dict[int, T],
        make_ready: Callable[[], Coroutine[Any, Any, bool]],
        *,
        looks_first: bool = False,
    ) -> T | None:
        """Take an item that the loop has made ready; errors as of :meth:`run`.

        An exception of a signal handler, or of gevent, may end a call anywhere. So no result that must not
        be lost crosses the threads: the loop keeps it in ``ready`` until the calling thread removes it there.
        Removing is the last step, in one bytecode: an interrupt comes before it, and the next call finds the
        item, or after the return. CPython runs signal handlers at the start of a function, in loops and
        after calls of C functions, so a caller may return the item, and nothing else.

        Args:
            ready: the items; the loop may remove items again that were not taken.
            make_ready: makes an item ready; False: there is none.
            looks_first: take what is ready already; otherwise ``make_ready`` decides.

        Returns:
            The first item; None: ``make_ready`` has returned False.
        """
        while True:
            if looks_first:
                try:
                    first = next(iter(ready))
                    item = ready[first]
                    del ready[first]
                    return item
                except (StopIteration, LookupError, RuntimeError):  # the loop, or another thread, was faster
                    looks_first = False
            if not self.run(make_ready):
                return None
            looks_first = True

    def check(self) -> None:
        """Check that a blocking call may be made here, also one that runs on its caller's thread.

        Raises:
            ClientStateError: as of :meth:`run`.
        """
        pid = os.getpid()
        thread = THREADS.get(pid)
        if thread is None or thread.halts or pid != self._pid or thread.is_current() or sys.is_finalizing():
            self._thread()

    def call(self, function: Callable[[], T]) -> T:
        """Call a plain function on the loop thread and wait for it; errors as of :meth:`run`."""

        async def called() -> T:
            return function()

        return self.run(called)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a plain function on the loop thread soon, without waiting; errors as of :meth:`run`."""
        self._thread().loop.call_soon_threadsafe(function)

    def submit(self, make: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Like :meth:`run`, without waiting."""
        loop = self._thread().loop
        future: Future[T] = CallFuture()
        loop.call_soon_threadsafe(lambda: chain(loop.create_task(make()), future))
        return future

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that runs the coroutines; errors as of :meth:`run`."""
        return self._thread().loop

    def iterate(self, items: AsyncIterator[T]) -> "Walk[T]":
        """Walk an asynchronous generator from this thread; while an item is used the loop makes the next."""
        return Walk(self, items)

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Have ``coroutine`` run without waiting for it; an error is logged. Called from any thread.

        In a forked child of the process that made the client it is closed instead.
        """
        thread = THREADS.get(os.getpid()) if self.is_of_this_process() else None
        if thread is None or thread.halts:
            coroutine.close()
        else:
            thread.loop.call_soon_threadsafe(thread.background.spawn, name, coroutine)

    def _thread(self) -> LoopThread:
        if sys.is_finalizing():
            raise ClientStateError(
                "the interpreter is shutting down and its loop thread has ended: close earlier"
            )
        if not self.is_of_this_process():
            raise ClientStateError(
                f"this client was made in process {self._pid} and inherited by {os.getpid()} through a fork: "
                "make a new client in the child"
            )
        thread = LoopThread.of_this_process()
        if thread.is_current():
            raise ClientStateError(
                "a blocking call on the loop thread would wait for itself: use rmqtools.aio here"
            )
        return thread


class Walk(Iterator[T]):
    """Walks an asynchronous generator from any thread, and closes the generator at the end.

    An interrupt ends only the call: the next one returns the item that the interrupted call would have.
    ``close`` waits until the generator has ended. The garbage collector, which closes an abandoned iterator,
    must not wait: it may run on any thread, also on the loop's, or after the loop thread has ended.
    """

    def __init__(self, bridge: Bridge, items: AsyncIterator[T]) -> None:
        self._bridge = bridge
        self._walked = _Walked(items)
        self._is_open = True

    def __next__(self) -> T:
        if not self._is_open:
            raise StopIteration
        try:
            found = self._bridge.take(self._walked.ready, self._walked.make_ready)
        except Exception:
            self.close()
            raise
        if found is None:  # the generator has ended
            self._is_open = False
            raise StopIteration
        (item,) = found
        return item

    def close(self) -> None:
        """End the generator, and wait until it has ended. A second call does nothing."""
        if self._is_open:
            self._bridge.run(self._walked.close)
            self._is_open = False

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing() and getattr(self, "_is_open", False):
            self._bridge.spawn("close_iterator", self._walked.close())


class _Walked(Generic[T]):
    """The loop's side of a :class:`Walk`: makes the next item while one is used.

    The loop thread keeps a reference during the walk: a generator or task that is collected together with
    its walk would be closed twice, or destroyed while pending.
    """

    def __init__(self, items: AsyncIterator[T]) -> None:
        self.ready: dict[int, tuple[T]] = {}
        self._items = items
        self._following: asyncio.Task[T | object] | None = None
        self._turn = asyncio.Lock()
        self._thread: LoopThread | None = None
        self._count = 0

    async def make_ready(self) -> bool:
        """Make the next item ready; return False after the last."""
        async with self._turn:
            if self.ready:  # its call was interrupted
                return True
            if self._thread is None:
                self._thread = LoopThread.of_this_process()
                self._thread.walked.add(self)
            following = self._following = self._following or _begin_next(self._items)
            await asyncio.wait({following})  # an interrupt ends this wait, and not the generator
            self._following = None
            if (item := following.result()) is _END:
                self._thread.walked.discard(self)
                return False
            self._count += 1
            self.ready[self._count] = (item,)  # type: ignore[assignment] # mypy does not narrow on a sentinel
            self._following = _begin_next(self._items)
            return True

    async def close(self) -> None:
        """End the generator."""
        try:
            async with self._turn:  # a call that was interrupted has to end first
                if (following := self._following) is not None:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
                if (close := getattr(self._items, "aclose", None)) is not None:
                    await close()
        finally:
            if self._thread is not None:
                self._thread.walked.discard(self)


_END = object()


def _begin_next(items: AsyncIterator[T]) -> asyncio.Task[T | object]:
    """Start a task for the next item. Its error counts as retrieved, since the iterator may be abandoned."""
    task = asyncio.ensure_future(_next(items))
    task.add_done_callback(_look_at)
    return task


def _look_at(task: asyncio.Task[Any]) -> None:
    """Retrieve a task's error; otherwise asyncio logs it when the task is collected."""
    if not task.cancelled():
        task.exception()


async def _next(items: AsyncIterator[T]) -> T | object:
    return await anext(items, _END)
