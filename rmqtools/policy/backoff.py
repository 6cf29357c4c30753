"""Decides how soon to try again: an address that refuses connections, a queue whose pulls bring nothing."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from rmqtools.model.record import record

FIRST_CONNECT_PAUSE = 0.05  # seconds, after the second failure in a row: at most 20 tries a second
FIRST_PULL_PAUSE = 0.020  # seconds; upstream PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL
LONGEST_CONNECT_PAUSE = 1.0  # seconds: a broker that is back is noticed this late


@record(kw_only=False)
class _ConnectFailure:
    """The last failure to connect to an address."""

    reason: str
    pause: float
    until: float


@dataclass(slots=True)
class ConnectBackoff:
    """The addresses that refuse connections. The first failure may be followed by another try at once.

    Each further failure in a row makes the pause longer; a request in between fails with the last reason.
    Ours: the Java client connects again for every request, so a program that sends in a loop makes thousands
    of connections a second to a dead broker.
    """

    _failures: dict[str, _ConnectFailure] = field(default_factory=dict)

    def failed(self, addr: str, reason: str, now: float) -> None:
        """Note that a connection was refused; ``now`` are seconds of a monotonic clock."""
        last = self._failures.get(addr)
        pause = 0.0 if last is None else min(LONGEST_CONNECT_PAUSE, max(FIRST_CONNECT_PAUSE, 2 * last.pause))
        self._failures[addr] = _ConnectFailure(reason, pause, now + pause)

    def connected(self, addr: str) -> None:
        """Forget the failures of an address."""
        self._failures.pop(addr, None)

    def reason(self, addr: str, now: float) -> str | None:
        """Return why the address must not be tried yet; None: it may be."""
        failure = self._failures.get(addr)
        return failure.reason if failure is not None and now < failure.until else None


@dataclass(slots=True)
class PullBackoff:
    """Pauses of one consumer's queues after answers without progress, which may come again at once.

    The first such answer in a row has no pause. Each further one doubles the pause, with jitter; an answer
    with progress ends the row.
    Ours: the Java client pulls again at once, or after 20 ms, without a limit.
    """

    longest: float
    jitter: Callable[[], float]
    """Returns a number from 0 to 1."""
    _rows: dict[Hashable, tuple[int, float]] = field(default_factory=dict)  # count, end of pause

    def note(self, queue: Hashable, now: float, *, paused: bool = False) -> float:
        """Note an answer without progress; return the pause. ``paused``: the first one has a pause, too."""
        count = self._rows.get(queue, (0, 0.0))[0] + 1
        steps = count if paused else count - 1
        pause = 0.0 if steps == 0 else min(self.longest, FIRST_PULL_PAUSE * 2.0 ** min(steps - 1, 32))
        pause *= 1.0 + self.jitter() / 4
        self._rows[queue] = (count, now + pause)
        return pause

    def ended(self, queue: Hashable) -> None:
        """End the row of a queue: an answer brought progress, or the queue is released."""
        if self._rows:
            self._rows.pop(queue, None)

    def delay(self, queue: Hashable, now: float) -> float:
        """Return the seconds that are left of a queue's pause."""
        row = self._rows.get(queue) if self._rows else None
        return 0.0 if row is None else max(0.0, row[1] - now)
