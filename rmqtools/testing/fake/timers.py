"""The clock of a fake cluster: the machine's, plus the time advanced by a test."""

import asyncio
from collections.abc import Callable

from rmqtools.clock import SYSTEM_CLOCK, Clock


class Timer:
    """A scheduled callback."""

    def __init__(self, due: float, callback: Callable[[], object]) -> None:
        self.due = due
        self.callback = callback
        self.handle: asyncio.TimerHandle | None = None


class Timers:
    """Runs callbacks at their time. All methods run on the cluster's loop."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._ahead = 0.0
        self._pending: set[Timer] = set()

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._clock.now_ms() + int(self._ahead * 1000)

    def monotonic(self) -> float:
        """Seconds, of an arbitrary origin."""
        return self._clock.monotonic() + self._ahead

    def after(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call ``callback`` after ``seconds``; for 0 in the next loop iteration."""
        timer = Timer(self.monotonic() + seconds, callback)
        self._pending.add(timer)
        self._arm(timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        """Cancel a callback; do nothing if it has run."""
        self._pending.discard(timer)
        if timer.handle is not None:
            timer.handle.cancel()

    def advance(self, seconds: float) -> None:
        """Advance the clock: all callbacks due until then run now, in their order."""
        until = self.monotonic() + seconds
        while due := [timer for timer in self._pending if timer.due <= until]:
            timer = min(due, key=lambda timer: timer.due)
            self._ahead += max(0.0, timer.due - self.monotonic())
            self._fire(timer)
        self._ahead += max(0.0, until - self.monotonic())
        for timer in self._pending:
            self._arm(timer)

    def close(self) -> None:
        """Cancel all callbacks."""
        for timer in [*self._pending]:
            self.cancel(timer)

    def _arm(self, timer: Timer) -> None:
        if timer.handle is not None:
            timer.handle.cancel()
        seconds = max(0.0, timer.due - self.monotonic())
        timer.handle = asyncio.get_running_loop().call_later(seconds, self._fire, timer)

    def _fire(self, timer: Timer) -> None:
        self.cancel(timer)
        timer.callback()
