"""The medians of a run, from the JSON that the bench has written: for the page on speed and its pictures."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any


class Run:
    """The lines of one run, by area."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._lines = {line["area"]: line for line in document["lines"]}

    def __contains__(self, area: str) -> bool:
        return area in self._lines

    def pair(self, area: str, value: str | None = None) -> tuple[float, float]:
        """Return the rate of our side and the best one of the others; or the medians of another value."""
        ours, *theirs = (_median(side["rounds"], value) for side in self._lines[area]["sides"])
        return ours, max(theirs)

    def cpu(self, area: str) -> tuple[float, float]:
        """Return the CPU of our side and of the best one of the others, microseconds a message."""
        ours, *others = (side["rounds"] for side in self._lines[area]["sides"])
        return _cpu(ours), _cpu(max(others, key=lambda rounds: _median(rounds, None)))


def _median(rounds: Sequence[Mapping[str, Any]], value: str | None) -> float:
    return float(
        statistics.median(one["more"][value] if value else one["count"] / one["seconds"] for one in rounds)
    )


def _cpu(rounds: Sequence[Mapping[str, Any]]) -> float:
    return float(statistics.median(one["cpu"] / one["count"] * 1e6 for one in rounds))
