"""How fast topics are pulled and consumed: sums of slices of time, over the last minute and the last hour.

Source of the rule: ConsumerStatsManager.consumeStatus (Java client): everything over the last minute, the
listener's time over the last hour where the minute has none, failed messages over the last hour.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from rmqtools.model.running_info import ConsumeStatus

_SLICE = 10.0  # seconds; as often Java looks at its counters
_MINUTE, _HOUR = 6, 360  # slices


@dataclass(slots=True)
class _Slice:
    """What happened in one slice; ``number`` counts slices of the clock."""

    number: int
    succeeded: int = 0
    failed: int = 0
    calls: int = 0
    call_seconds: float = 0.0
    pulled: int = 0
    pulls: int = 0
    pull_seconds: float = 0.0


class ConsumeRates:
    """The rates of one consumer's topics. ``now`` is always the seconds of a monotonic clock."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._slices: dict[str, deque[_Slice]] = defaultdict(lambda: deque(maxlen=_HOUR))

    def consumed(self, topic: str, now: float, *, succeeded: int, failed: int, seconds: float) -> None:
        """A listener was called and took so long."""
        slice_ = self._slice(topic, now)
        slice_.succeeded += succeeded
        slice_.failed += failed
        slice_.calls += 1
        slice_.call_seconds += seconds

    def pulled(self, topic: str, now: float, *, count: int, seconds: float) -> None:
        """A pull or pop found so many messages after so long."""
        slice_ = self._slice(topic, now)
        slice_.pulled += count
        slice_.pulls += 1
        slice_.pull_seconds += seconds

    def status(self, topic: str, now: float) -> ConsumeStatus:
        """The topic's rates as they are now."""
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
    """Seconds per count, in milliseconds; 0 where nothing was counted."""
    seconds, count = map(sum, zip((0.0, 0), *pairs, strict=True))
    return seconds * 1000 / count if count else 0.0
