"""Rates at which topics are pulled and consumed, over the last minute and the last hour, in slices of time.

A message that was skipped because of its broken head counts as failed.

Source of the rule: ConsumerStatsManager.consumeStatus (Java client): all rates over the last minute. If the
minute has no listener times, those of the last hour. Failed messages over the last hour.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from rmqtools.model.running_info import ConsumeStatus

_SLICE = 10.0  # seconds; Java samples its counters as often
_MINUTE, _HOUR = 6, 360  # slices


@dataclass(slots=True)
class _Slice:
    """The counters of one slice; ``number`` counts slices of the clock."""

    number: int
    succeeded: int = 0
    failed: int = 0
    calls: int = 0
    call_seconds: float = 0.0
    pulled: int = 0
    pulls: int = 0
    pull_seconds: float = 0.0


class ConsumeRates:
    """The rates of one consumer's topics. ``now`` is always the seconds of a monotonic clock.

    Attributes:
        passed_over: number of messages skipped since the start.
        last_error: of a listener, as text; None: none since the start.
    """

    def __init__(self, began: float) -> None:
        self.passed_over = 0
        self.last_error: str | None = None
        self._began = began
        self._slices: dict[str, deque[_Slice]] = defaultdict(lambda: deque(maxlen=_HOUR))

    def consumed(
        self, topic: str, now: float, *, succeeded: int, failed: int, seconds: float, calls: int = 1
    ) -> None:
        """Count a listener's calls, and how long they took together."""
        slice_ = self._slice(topic, now)
        slice_.succeeded += succeeded
        slice_.failed += failed
        slice_.calls += calls
        slice_.call_seconds += seconds

    def pulled(self, topic: str, now: float, *, count: int, seconds: float, pulls: int = 1) -> None:
        """Count pulls or pops, their messages and how long they took together."""
        slice_ = self._slice(topic, now)
        slice_.pulled += count
        slice_.pulls += pulls
        slice_.pull_seconds += seconds

    def pass_over(self, topic: str, now: float) -> None:
        """Count a message that no listener gets because its head is broken."""
        self.passed_over += 1
        self._slice(topic, now).failed += 1

    def status(self, topic: str, now: float) -> ConsumeStatus:
        """Return the topic's current rates."""
        number = int(now // _SLICE)
        known = self._slices.get(topic, ())
        hour = [slice_ for slice_ in known if slice_.number > number - _HOUR]
        minute = [slice_ for slice_ in hour if slice_.number > number - _MINUTE]
        covered = max(1.0, now - max(self._began, (number - _MINUTE + 1) * _SLICE))
        return ConsumeStatus(
            pull_rt=_mean_ms((one.pull_seconds, one.pulls) for one in minute),
            pull_tps=sum(one.pulled for one in minute) / covered,
            consume_rt=_call_ms(minute) or _call_ms(hour),
            consume_ok_tps=sum(one.succeeded for one in minute) / covered,
            consume_failed_tps=sum(one.failed for one in minute) / covered,
            consume_failed_msgs=sum(one.failed for one in hour),
        )

    def _slice(self, topic: str, now: float) -> _Slice:
        slices, number = self._slices[topic], int(now // _SLICE)
        if not slices or slices[-1].number != number:
            slices.append(_Slice(number))
        return slices[-1]


def _call_ms(slices: Iterable[_Slice]) -> float:
    return _mean_ms((one.call_seconds, one.calls) for one in slices)


def _mean_ms(pairs: Iterable[tuple[float, int]]) -> float:
    """Seconds per count, in milliseconds; 0 without counts."""
    seconds, count = map(sum, zip((0.0, 0), *pairs, strict=True))
    return seconds * 1000 / count if count else 0.0
