"""Differences between the clocks of this machine, of brokers and of members, estimated from answers. Pure."""

import re
from collections.abc import Iterator, Mapping

from rmqtools.model.broker_view import common_clock
from rmqtools.model.group_view import Finding, FindingKind

CLOCK_LIMIT = 5.0
"""Seconds from which a difference is reported."""

_RUNTIME = re.compile(r"\[ (\d+) days, (\d+) hours, (\d+) minutes, (\d+) seconds \]")
_SECONDS = (86_400, 3_600, 60, 1)


def broker_ahead(statistics: Mapping[str, str], asked_ms: int, answered_ms: int) -> float | None:
    """Return how many seconds a broker's clock is ahead of this machine's, within about a second.

    Args:
        statistics: its answer to GET_BROKER_RUNTIME_INFO: its start, and the time since, in whole seconds.
        asked_ms: when it was asked, by this machine's clock.
        answered_ms: when its answer came.

    Returns:
        Negative: it is behind; 0.0: the clocks may be equal; None: the answer has no time.

    Source of the rule: StoreStatsService.getFormatRuntime (broker 5.5.0).
    """
    start, since = statistics.get("bootTimestamp", ""), _RUNTIME.fullmatch(statistics.get("runtime", ""))
    if since is None or not start.isdigit():
        return None
    seconds = sum(int(number) * each for number, each in zip(since.groups(), _SECONDS, strict=True))
    earliest_ms = int(start) + seconds * 1000
    return ahead(earliest_ms, earliest_ms + 1000, asked_ms, answered_ms)


def ahead(earliest_ms: int, latest_ms: int, asked_ms: int, answered_ms: int) -> float:
    """Return how many seconds a clock is ahead that showed a time in between while it was asked."""
    least, most = earliest_ms - answered_ms, latest_ms - asked_ms
    return 0.0 if least <= 0 <= most else (least + most) / 2000


def clock_findings(clocks: Mapping[str, float]) -> Iterator[Finding]:
    """Find clocks of brokers that differ from each other, or from this machine's."""
    common = common_clock(clocks)
    if abs(common) > CLOCK_LIMIT:
        text = f"the clock of this machine is {difference(-common)} those of the brokers"
        yield Finding(FindingKind.CLOCK_DIFFERS, f"{text}: ages are corrected; set it right")
    for name, own in clocks.items():
        if abs(own - common) > CLOCK_LIMIT:
            text = f"the clock of broker {name} is {difference(own - common)} those of the other brokers"
            remedy = "set it right: delays, ages and retention of messages go by it"
            yield Finding(FindingKind.CLOCK_DIFFERS, f"{text}: {remedy}", name)


def difference(seconds: float) -> str:
    """Return ``12 s ahead of`` or ``12 s behind``."""
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"
