"""Latency fault avoidance: isolates brokers for a time that were slow or did not answer.

Off by default, as in the Java client. Times are milliseconds of a monotonic clock.
Source of the rules: MQFaultStrategy, LatencyFaultToleranceImpl (Java client).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rmqtools.errors import BrokerError, RemotingError, RocketMQError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import BrokerHealth
from rmqtools.policy.select import QueueIndex, select_avoiding, select_filtered, select_next

ISOLATION_LATENCY_MS = 10_000  # the latency that an attempt without an answer counts as
DETECT_INTERVAL_MS = 2_000  # upstream detectInterval
DETECT_ROUND_INTERVAL = 3.0  # seconds; upstream startDetector
DETECT_TIMEOUT = 0.2  # seconds; upstream detectTimeout


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """Maps a broker's latency to its isolation period: the period of the largest bound that is reached."""

    latency_max_ms: tuple[int, ...] = (50, 100, 550, 1800, 3000, 5000, 15000)
    not_available_ms: tuple[int, ...] = (0, 0, 2000, 5000, 6000, 10000, 30000)

    def not_available_for(self, latency_ms: int) -> int:
        """Return the isolation period for a latency; 0: none."""
        pairs = zip(reversed(self.latency_max_ms), reversed(self.not_available_ms), strict=True)
        return next((duration for bound, duration in pairs if latency_ms >= bound), 0)


@dataclass(slots=True)
class FaultItem:
    """The state of one broker."""

    current_latency_ms: int = 0
    start_ms: int | None = None  # end of the isolation period
    check_ms: int = 0  # earliest time of the detector's next probe
    is_reachable: bool = True

    def is_available(self, now_ms: int) -> bool:
        """Return whether the isolation period is over."""
        return self.start_ms is None or now_ms >= self.start_ms

    def keep_away(self, now_ms: int, duration_ms: int) -> None:
        """Isolate the broker for a duration. Never shortens an isolation period."""
        if duration_ms > 0 and (self.start_ms is None or now_ms + duration_ms > self.start_ms):
            self.start_ms = now_ms + duration_ms


@dataclass(slots=True)
class LatencyFaultTolerance:
    """The brokers that a producer has isolated. Unknown brokers are available.

    Threads share it: what walks over ``items`` uses a copy.
    """

    enabled: bool = False
    table: LatencyTable = field(default_factory=LatencyTable)
    items: dict[str, FaultItem] = field(default_factory=dict)

    def update(
        self, broker_name: str, latency_ms: int, *, isolation: bool, reachable: bool, now_ms: int
    ) -> None:
        """Note the result of an attempt. ``isolation``: it counts as failed, whatever its latency."""
        if not self.enabled:
            return
        item = self.items.setdefault(broker_name, FaultItem())
        item.current_latency_ms, item.is_reachable = latency_ms, reachable
        counted = ISOLATION_LATENCY_MS if isolation else latency_ms
        item.keep_away(now_ms, self.table.not_available_for(counted))

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """Return whether the broker is not isolated now."""
        item = self.items.get(broker_name)
        return item is None or item.is_available(now_ms)

    def is_reachable(self, broker_name: str) -> bool:
        """Return whether the broker answered its last attempt."""
        item = self.items.get(broker_name)
        return item is None or item.is_reachable

    def due_for_detection(self, now_ms: int) -> list[str]:
        """Return the brokers to probe now; each is due again after :data:`DETECT_INTERVAL_MS`."""
        due = [name for name, item in self.items.copy().items() if now_ms >= item.check_ms]
        for name in due:
            self.items[name].check_ms = now_ms + DETECT_INTERVAL_MS
        return due

    def detected(self, broker_name: str, answers: bool | None) -> None:
        """Note the result of a probe; None: the broker has no address any more and is forgotten."""
        if answers is None:
            self.items.pop(broker_name, None)
        elif answers and broker_name in self.items:
            self.items[broker_name].is_reachable = True

    def health(self, now_ms: int) -> Mapping[str, BrokerHealth]:
        """Return the state of all known brokers, for users."""
        return {
            name: BrokerHealth(
                latency=item.current_latency_ms / 1000,
                is_available=item.is_available(now_ms),
                is_reachable=item.is_reachable,
                available_in=max(0, (item.start_ms or now_ms) - now_ms) / 1000,
            )
            for name, item in sorted(self.items.copy().items())
        }


def select_tolerant(
    queues: Sequence[MessageQueue],
    index: QueueIndex,
    last_broker_name: str | None,
    tolerance: LatencyFaultTolerance,
    now_ms: int,
) -> MessageQueue:
    """Select the next queue in turn: on an available broker other than the last, else reachable, else any."""
    if not tolerance.enabled:
        return select_avoiding(queues, index, last_broker_name)

    def elsewhere(queue: MessageQueue) -> bool:
        return queue.broker_name != last_broker_name

    def available(queue: MessageQueue) -> bool:
        return tolerance.is_available(queue.broker_name, now_ms)

    def reachable(queue: MessageQueue) -> bool:
        return tolerance.is_reachable(queue.broker_name)

    return (
        select_filtered(queues, index, [available, elsewhere])
        or select_filtered(queues, index, [reachable, elsewhere])
        or select_next(queues, index)
    )


def fault_of(error: RocketMQError | None, *, detector_runs: bool) -> tuple[bool, bool]:
    """Return how an attempt counts, as (isolation, reachable).

    A broker that refused is isolated and not reachable. A broker that did not answer is isolated; it is
    marked as not reachable only if the detector runs, which can find it again.
    """
    if isinstance(error, BrokerError):
        return True, False
    if isinstance(error, RemotingError):
        return True, not detector_runs
    return False, True
