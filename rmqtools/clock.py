"""The clock: the only module that reads the time. The engine takes a :class:`Clock` as an argument.

Layers below the engine have no clock: they get the time as an argument.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The times that the engine needs. Tests pass their own."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970, as the wire carries them."""

    def monotonic(self) -> float:
        """Seconds of a clock that never steps back; for deadlines and durations."""

    def nanos(self) -> int:
        """Nanoseconds since an arbitrary origin; makes the client ids of one process unique."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """See :meth:`Clock.now_ms`."""
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)  # every send asks five times
    nanos = staticmethod(time.perf_counter_ns)


SYSTEM_CLOCK = SystemClock()


def pause(seconds: float) -> None:
    """Block this thread for some time; not for the loop thread."""
    time.sleep(seconds)


def let_others_run() -> None:
    """Let a thread that waits for the interpreter have it."""
    time.sleep(0)


def as_time(timestamp_ms: int) -> datetime:
    """Milliseconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC)
