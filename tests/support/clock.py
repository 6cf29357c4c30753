"""A clock that stands still until a test moves it."""


class ManualClock:
    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = float(now_ms)
        self._set_by_ms = 0.0

    def now_ms(self) -> int:
        return int(self._now_ms + self._set_by_ms)

    def monotonic(self) -> float:
        return self._now_ms / 1000

    def nanos(self) -> int:
        return int(self._now_ms * 1_000_000)

    def set_wall_clock(self, seconds: float) -> None:
        """Set the wall clock this far ahead, as an operator or NTP does; no time passes."""
        self._set_by_ms += seconds * 1000

    def advance(self, seconds: float) -> None:
        self._now_ms += seconds * 1000
