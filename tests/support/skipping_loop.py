"""An event loop that does not wait: its time hardly moves while anything runs, and jumps when all rest.

A test of a timeout of half a second takes ten milliseconds, and a busy machine makes no timeout strike too
early, since time passes only where every task waits and no socket has news. Peers live on the same loop, as
those of ``tests.support`` do. While a thread works for the loop, or a fake cluster answers on a thread of its
own, time is the machine's: how long another thread takes cannot be seen from here.

The kernel counts the bytes that a socket has sent and its peer's socket has not received. While there are
some, time passes slowly, so that they arrive before a timeout, however busy the machine is.
"""

import asyncio
import fcntl
import select
import selectors
import struct
import termios
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from typing import Any

from rmqtools.clock import SystemClock
from rmqtools.testing.fake.cluster import THREAD_NAME

_JUMP_SECONDS = 0.05  # at most, without a look at the sockets
_SPEED = 50  # seconds that pass in a real one while bytes are on their way over loopback
_JUMP_SECONDS_IF_STILL = 0.25  # the same while no bytes are on their way
_SPEED_IF_STILL = 2500
_JUMP_SECONDS_IN_HASTE = 5.0  # of simulations: each ends at the next timer, or when something arrives
_STEP_SECONDS = 2e-6  # from one look at the clock to the next, so that no two times are equal


class SkippingSelector(selectors.DefaultSelector):
    """Tells the loop how long it waited, which is more than it did."""

    def __init__(self, *, in_haste: bool = False) -> None:
        super().__init__()
        self.passed = 0.0
        self.threads_at_work = 0
        self._in_haste = in_haste

    def select(self, timeout: float | None = None) -> list[Any]:
        """See :meth:`selectors.BaseSelector.select`."""
        found = super().select(0)
        left = float("inf") if timeout is None else timeout
        while not found and left > 0:
            others_work = self.threads_at_work > 0 or _is_a_cluster_on_a_thread()
            if timeout is None or others_work:
                began = time.monotonic()
                found = super().select(min(left, 0.01) if others_work else None)
                waited = time.monotonic() - began
            elif self._in_haste:
                found = super().select(0)  # loopback delivers within a system call, nearly always
                waited = 0.0 if found else min(left, _JUMP_SECONDS_IN_HASTE)
                self.passed += waited
                left -= waited
                continue
            else:
                still = self._is_still()
                waited = min(left, _JUMP_SECONDS_IF_STILL if still else _JUMP_SECONDS)
                pause = waited / (_SPEED_IF_STILL if still else _SPEED)
                news, _, _ = select.select([self], [], [], pause)  # epoll waits whole milliseconds
                found = super().select(0) if news else []
                waited = 0.0 if found else waited
            self.passed += waited
            left -= waited
        return found

    def _is_still(self) -> bool:
        """Return whether no socket connects, waits for space, or has sent bytes that have not arrived."""
        return not any(
            key.events & selectors.EVENT_WRITE or _unsent(key.fd) for key in self.get_map().values()
        )


def _is_a_cluster_on_a_thread() -> bool:
    return any(thread.name == THREAD_NAME for thread in threading.enumerate())


def _unsent(fd: int) -> int:
    """Return how many bytes a socket has sent that its peer's socket has not received."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, termios.TIOCOUTQ, b"\0" * 4))[0])
    except OSError:  # it listens, or is none
        return 0


class SkippingLoop(asyncio.SelectorEventLoop):
    """The loop; ``asyncio.Runner(loop_factory=SkippingLoop)``."""

    def __init__(self, *, in_haste: bool = False) -> None:
        self._skipping = SkippingSelector(in_haste=in_haste)
        self._began = time.monotonic()
        super().__init__(self._skipping)

    def time(self) -> float:
        """Seconds of a clock that hardly moves while anything runs."""
        self._skipping.passed += _STEP_SECONDS
        return self._began + self._skipping.passed

    def run_in_executor(  # type: ignore[override]  # any function
        self, executor: Executor | None, func: Any, *args: Any
    ) -> asyncio.Future[Any]:
        """See :meth:`asyncio.loop.run_in_executor`."""
        self._skipping.threads_at_work += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._done)
        return future

    def _done(self, _: asyncio.Future[Any]) -> None:
        self._skipping.threads_at_work -= 1


@contextmanager
def _clock_of(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let the engine's clock be the loop's."""
    before = SystemClock.monotonic
    SystemClock.monotonic = staticmethod(loop.time)
    try:
        yield
    finally:
        SystemClock.monotonic = staticmethod(before)


def run_skipping(main: Callable[[], Coroutine[Any, Any, Any]], *, in_haste: bool = False) -> Any:
    """``asyncio.run`` on such a loop; ``in_haste``: time jumps whenever all tasks wait."""
    with (
        asyncio.Runner(loop_factory=partial(SkippingLoop, in_haste=in_haste)) as runner,
        _clock_of(runner.get_loop()),
    ):
        return runner.run(main())
