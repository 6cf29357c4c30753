"""The only place of the package that reads time; everything above takes a :class:`Clock`.

Below the engine nothing reads a clock at all: the time arrives as an argument.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the engine asks about time. Tests pass their own."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970, as the wire carries them."""

    def monotonic(self) -> float:
        """Seconds of a clock that never steps back; for deadlines and durations."""

    def nanos(self) -> int:
        """Nanoseconds of an arbitrary origin; tells apart two clients of one process."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """See :meth:`Clock.now_ms`."""
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)  # every send asks five times
    nanos = staticmethod(time.perf_counter_ns)


SYSTEM_CLOCK = SystemClock()


def as_time(timestamp_ms: int) -> datetime:
    """Milliseconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC)
