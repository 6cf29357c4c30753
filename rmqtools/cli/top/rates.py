"""Rates of counters over time, as numbers and as a row of bars. Pure."""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

_BARS = "▁▂▃▄▅▆▇█"
_KEPT = 60  # rates of a counter


class Meter:
    """The rates of counters that are read from time to time, added up."""

    def __init__(self) -> None:
        self._last: tuple[float, Mapping[Hashable, int]] | None = None
        self.rates: deque[float] = deque(maxlen=_KEPT)

    def read(self, moment: float, counts: Mapping[Any, int]) -> None:
        """Take a reading of each counter; ``moment`` in seconds.

        Only counters of this reading and of the one before count: one that was missing meanwhile, because its
        broker did not answer, makes no spike when it is back. One that went back adds nothing.
        """
        last = self._last
        self._last = (moment, dict(counts))
        if last is not None and moment > last[0]:
            pairs = [(count, last[1][key]) for key, count in counts.items() if key in last[1]]
            grown = [count - before for count, before in pairs if count >= before]
            if grown:
                self.rates.append(sum(grown) / (moment - last[0]))

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


def age_text(seconds: float | None) -> str:
    """Return a span of time in at most five characters: ``-``, ``45s``, ``12m``, ``3h``, ``7d``."""
    if seconds is None:
        return "-"
    seconds = max(seconds, 0.0)
    for limit, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * limit:
            return f"{seconds / limit:.0f}{unit}"
    return f"{seconds:.0f}s"
