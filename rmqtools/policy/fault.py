"""Latency fault avoidance: keep away for a while from brokers that were slow or did not answer.

Off by default, as in the Java client. Times are milliseconds of any clock that does not step back.
Source of the rules: MQFaultStrategy, LatencyFaultToleranceImpl (Java client).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rmqtools.errors import BrokerError, RemotingError, RocketMQError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import BrokerHealth
from rmqtools.policy.select import QueueIndex, select_avoiding, select_filtered, select_next

ISOLATION_LATENCY_MS = 10_000  # what an attempt without an answer counts as
DETECT_INTERVAL_MS = 2_000  # upstream detectInterval
DETECT_TIMEOUT = 0.2  # seconds; upstream detectTimeout


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """From how slow a broker was to how long it is left alone; the last bound that was reached counts."""

    latency_max_ms: tuple[int, ...] = (50, 100, 550, 1800, 3000, 5000, 15000)
    not_available_ms: tuple[int, ...] = (0, 0, 2000, 5000, 6000, 10000, 30000)

    def not_available_for(self, latency_ms: int) -> int:
        """How long a broker with this latency is left alone; 0: not at all."""
        pairs = zip(reversed(self.latency_max_ms), reversed(self.not_available_ms), strict=True)
        return next((duration for bound, duration in pairs if latency_ms >= bound), 0)


@dataclass(slots=True)
class FaultItem:
    """What is known of one broker."""

    current_latency_ms: int = 0
    start_ms: int | None = None  # available again from then on
    check_ms: int = 0  # looked at again by the detector from then on
    is_reachable: bool = True

    def is_available(self, now_ms: int) -> bool:
        """Whether its time apart is over."""
        return self.start_ms is None or now_ms >= self.start_ms

    def keep_away(self, now_ms: int, duration_ms: int) -> None:
        """Leave it alone for so long; a time apart that lasts longer is not shortened."""
        if duration_ms > 0 and (self.start_ms is None or now_ms + duration_ms > self.start_ms):
            self.start_ms = now_ms + duration_ms


@dataclass(slots=True)
class LatencyFaultTolerance:
    """The brokers a producer keeps away from. A broker it knows nothing of is available."""

    enabled: bool = False
    table: LatencyTable = field(default_factory=LatencyTable)
    items: dict[str, FaultItem] = field(default_factory=dict)

    def update(
        self, broker_name: str, latency_ms: int, *, isolation: bool, reachable: bool, now_ms: int
    ) -> None:
        """Write down how an attempt went. ``isolation``: it got no answer, whatever its latency."""
        if not self.enabled:
            return
        item = self.items.setdefault(broker_name, FaultItem())
        item.current_latency_ms, item.is_reachable = latency_ms, reachable
        counted = ISOLATION_LATENCY_MS if isolation else latency_ms
        item.keep_away(now_ms, self.table.not_available_for(counted))

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """Whether nothing speaks against the broker now."""
        item = self.items.get(broker_name)
        return item is None or item.is_available(now_ms)

    def is_reachable(self, broker_name: str) -> bool:
        """Whether the broker answered at all when last tried."""
        item = self.items.get(broker_name)
        return item is None or item.is_reachable

    def due_for_detection(self, now_ms: int) -> list[str]:
        """The brokers to look at now; each is due again after :data:`DETECT_INTERVAL_MS`."""
        due = [name for name, item in self.items.items() if now_ms >= item.check_ms]
        for name in due:
            self.items[name].check_ms = now_ms + DETECT_INTERVAL_MS
        return due

    def detected(self, broker_name: str, answers: bool | None) -> None:
        """Take what a look at a broker gave; None: it has no address any more, and is forgotten."""
        if answers is None:
            self.items.pop(broker_name, None)
        elif answers and broker_name in self.items:
            self.items[broker_name].is_reachable = True

    def reachable_brokers(self) -> list[str]:
        """The known brokers that answered when last tried, sorted."""
        return sorted(name for name, item in self.items.items() if item.is_reachable)

    def health(self, now_ms: int) -> Mapping[str, BrokerHealth]:
        """What is known, for people."""
        return {
            name: BrokerHealth(
                latency=item.current_latency_ms / 1000,
                is_available=item.is_available(now_ms),
                is_reachable=item.is_reachable,
                available_in=max(0, (item.start_ms or now_ms) - now_ms) / 1000,
            )
            for name, item in sorted(self.items.items())
        }


def select_tolerant(
    queues: Sequence[MessageQueue],
    index: QueueIndex,
    last_broker_name: str | None,
    tolerance: LatencyFaultTolerance,
    now_ms: int,
) -> MessageQueue:
    """The next queue in turn: available and not on the broker that failed last, else reachable, else any."""
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
    """How an attempt counts, as (isolation, reachable).

    A broker that said no is isolated and not reachable; one that did not answer is isolated, and not
    reachable only where the detector can find it again.
    """
    if isinstance(error, BrokerError):
        return True, False
    if isinstance(error, RemotingError):
        return True, not detector_runs
    return False, True
