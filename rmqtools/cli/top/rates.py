"""Rates of counters over time, as numbers and as a row of bars. Pure."""

from collections import deque
from collections.abc import Iterable

_BARS = "▁▂▃▄▅▆▇█"
_KEPT = 60  # rates of a counter


class Meter:
    """The rates of a counter that is read from time to time."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None
        self.rates: deque[float] = deque(maxlen=_KEPT)

    def read(self, moment: float, count: int) -> None:
        """Take a reading; ``moment`` in seconds. A counter that went back gives no rate."""
        if self._last is not None and moment > self._last[0] and count >= self._last[1]:
            self.rates.append((count - self._last[1]) / (moment - self._last[0]))
        self._last = (moment, count)

    @property
    def rate(self) -> float | None:
        """The last rate per second; None before the second reading."""
        return self.rates[-1] if self.rates else None


def bars(values: Iterable[float], width: int) -> str:
    """Draw the last ``width`` values as bars; the largest has full height, zero the lowest."""
    shown = list(values)[-width:]
    highest = max(shown, default=0.0)
    if highest <= 0:
        return (_BARS[0] * len(shown)).rjust(width)
    steps = len(_BARS) - 1
    return "".join(_BARS[round(value / highest * steps)] for value in shown).rjust(width)


def short(value: float | None) -> str:
    """Return a rate or a count in at most five characters: ``-``, ``0.5``, ``87``, ``1.2k``, ``34M``."""
    if value is None:
        return "-"
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit * 0.9995:
            scaled = value / limit
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return f"{value:.1f}" if isinstance(value, float) and 0 < value < 9.95 else f"{value:.0f}"
