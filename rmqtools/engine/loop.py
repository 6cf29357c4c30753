"""The loop thread behind the blocking face: one per process, started on first use.

A loop thread belongs to one pid. After a fork the child starts its own, and a client made by the parent
refuses to be used in the child: its sockets are shared with the parent.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any, Generic, TypeVar

from rmqtools.errors import ClientStateError

T = TypeVar("T")

_threads: dict[int, "LoopThread"] = {}


class LoopThread:
    """A daemon thread that runs one event loop for ever."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ident: int | None = None

    @classmethod
    def of_this_process(cls) -> "LoopThread":
        """The process's loop thread, running."""
        thread = _threads.get(os.getpid()) or _threads.setdefault(os.getpid(), cls())
        thread._start()
        return thread

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Its loop, which runs."""
        assert self._loop is not None
        return self._loop

    def is_current(self) -> bool:
        """Whether the caller itself runs on the loop thread, where blocking would stop everything."""
        return threading.get_ident() == self._ident

    def _start(self) -> None:
        with self._lock:
            if self._loop is not None:
                return
            ready = threading.Event()
            threading.Thread(target=self._run, args=(ready,), name="rmqtools-loop", daemon=True).start()
            ready.wait()

    def _run(self, ready: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._loop, self._ident = loop, threading.get_ident()
        loop.call_soon(ready.set)
        loop.run_forever()


class Call(Generic[T]):
    """A coroutine that one thread waits for while the loop thread runs it.

    A lock and two callbacks: a future of ``run_coroutine_threadsafe`` does the same
    for 20 us more, which a blocking send would pay every time.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._ended = threading.Lock()
        self._ended.acquire()
        loop.call_soon_threadsafe(self._begin)

    def wait(self) -> T:
        """The coroutine's result, or its error; when the waiting is interrupted it is cancelled."""
        try:
            self._ended.acquire()
        except BaseException:
            self._loop.call_soon_threadsafe(self._cancel)
            raise
        task, self._task = self._task, None
        assert task is not None
        try:
            if task.cancelled():
                raise CancelledError  # the threads' own: asyncio's is no Exception
            return task.result()
        finally:
            del task  # an error's traceback holds this frame, and the task holds the error

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(lambda _: self._ended.release())

    def _cancel(self) -> None:
        assert self._task is not None  # callbacks run in their order
        self._task.cancel()


class Bridge:
    """Runs the engine's coroutines for blocking callers. One per client; safe to share between threads."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def is_of_this_process(self) -> bool:
        """Whether the client was made here, not inherited through a fork."""
        return os.getpid() == self._pid

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run ``coroutine`` on the loop thread and wait for it.

        Raises:
            ClientStateError: in a forked child of the process that made the client, or on the loop thread.
        """
        return Call(coroutine, self._thread_for(coroutine).loop).wait()

    def call(self, function: Callable[[], T]) -> T:
        """Call a plain function on the loop thread and wait for it; errors as of :meth:`run`."""

        async def called() -> T:
            return function()

        return self.run(called())

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Like :meth:`run`, without waiting."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._thread_for(coroutine).loop)

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Walk an asynchronous generator from this thread; while an item is used the loop makes the next."""
        ahead, turn = one_ahead(items), asyncio.Lock()

        async def following() -> T | object:
            async with turn:
                return await _next(ahead)

        async def close() -> None:
            async with turn:  # one that was interrupted has to notice it first
                await ahead.aclose()

        try:
            while (item := self.run(following())) is not _END:
                yield item  # type: ignore[misc] # mypy does not narrow on a sentinel
                del item  # the caller's alone from here on
        except BaseException:  # at its end it has closed itself
            self.run(close())
            raise

    def _thread_for(self, coroutine: Coroutine[Any, Any, T]) -> LoopThread:
        """The loop thread; a coroutine that cannot run there is closed."""
        try:
            return self._thread()
        except ClientStateError:
            coroutine.close()
            raise

    def _thread(self) -> LoopThread:
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


_END = object()


async def one_ahead(items: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    """Hand out what ``items`` hands out, and have the next one made meanwhile."""
    following = asyncio.ensure_future(_next(items))
    try:
        while (item := await following) is not _END:
            following = asyncio.ensure_future(_next(items))
            yield item  # type: ignore[misc] # mypy does not narrow on a sentinel
            del item
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        if (close := getattr(items, "aclose", None)) is not None:
            await close()


async def _next(items: AsyncIterator[T]) -> T | object:
    return await anext(items, _END)
