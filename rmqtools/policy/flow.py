"""Flow control: whether a queue may be pulled, or its member must first consume the messages it holds.

A queue that holds no message may be pulled however much the others hold: one that is paused, or whose message
fails again and again, would stop the others for good. So a member holds at most its limit, and one answer of
each queue more.
Source of the rules: DefaultMQPushConsumerImpl.pullMessage, RebalancePushImpl.messageQueueChanged,
DefaultLitePullConsumerImpl.PullTaskImpl (Java client). Java compares sizes in whole MiB and so stops up to
one MiB later; here sizes are bytes. Java counts the answers of a pull consumer, and no bytes.
"""

from dataclasses import dataclass, replace

from rmqtools.model.record import record

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """The unconsumed messages that a member holds of a queue; ``span`` is largest minus smallest offset."""

    count: int = 0
    size_bytes: int = 0
    span: int = 0


@dataclass(slots=True)
class CachedByMember:
    """The unconsumed messages that a member holds of all its queues; each queue adds and removes its own."""

    count: int = 0
    size_bytes: int = 0

    def add(self, count: int, size_bytes: int) -> None:
        """Count messages that have come; negative: that are gone."""
        self.count += count
        self.size_bytes += size_bytes


@record
class PullThresholds:
    """Bounds of the messages that a member holds, of one queue and of all; pulling pauses above, not at them.

    ``member_count`` and ``member_size_bytes`` are of all queues together; None: no bound.
    """

    max_count: int = 1000  # upstream pullThresholdForQueue
    max_size_bytes: int = 100 * MIB  # upstream pullThresholdSizeForQueue
    max_span: int | None = 2000  # upstream consumeConcurrentlyMaxSpan; None for ordered consumption
    member_count: int | None = None  # upstream pullThresholdForTopic, pullThresholdForAll
    member_size_bytes: int | None = None  # upstream pullThresholdSizeForTopic

    def shared(self, queue_count: int) -> "PullThresholds":
        """Return these limits; each queue gets an equal part of the member's in place of its own.

        ``queue_count`` counts all queues of the member, of every topic, as in Java. A queue gets at least
        one message and one MiB.
        """
        if queue_count <= 0 or (self.member_count is None and self.member_size_bytes is None):
            return self
        return replace(
            self,
            max_count=_share(self.member_count, queue_count, 1) or self.max_count,
            max_size_bytes=_share(self.member_size_bytes, queue_count, MIB) or self.max_size_bytes,
        )


@record(kw_only=False)
class Exceeded:
    """An exceeded limit: its name in :class:`PullThresholds`, the actual value, the allowed value."""

    name: str
    value: int
    limit: int


def exceeded_threshold(
    cached: Cached, thresholds: PullThresholds, *, of_member: CachedByMember
) -> Exceeded | None:
    """Return the first limit that forbids pulling a queue; None if it may be pulled.

    ``cached`` is of the queue, ``of_member`` of all queues.
    """
    if cached.count > thresholds.max_count:
        return Exceeded("max_count", cached.count, thresholds.max_count)
    if cached.size_bytes > thresholds.max_size_bytes:
        return Exceeded("max_size_bytes", cached.size_bytes, thresholds.max_size_bytes)
    if thresholds.max_span is not None and cached.span > thresholds.max_span:
        return Exceeded("max_span", cached.span, thresholds.max_span)
    return _exceeded_by_member(of_member, thresholds) if cached.count else None


def _exceeded_by_member(cached: CachedByMember, thresholds: PullThresholds) -> Exceeded | None:
    most, most_bytes = thresholds.member_count, thresholds.member_size_bytes
    if most is not None and cached.count > most:
        return Exceeded("member_count", cached.count, most)
    if most_bytes is not None and cached.size_bytes > most_bytes:
        return Exceeded("member_size_bytes", cached.size_bytes, most_bytes)
    return None


def _share(of_member: int | None, queue_count: int, least: int) -> int | None:
    return None if of_member is None else max(least, of_member // queue_count)


class MessageRate:
    """Delays fetches of one consumer to keep ``max_messages_per_second``; the caller passes the time.

    The pause comes before a fetch, never between fetch and listener. So messages do not age in it, and it
    counts neither against ``consume_timeout`` nor against an invisible time. A fetch may return more messages
    than a second allows; the next fetch then waits longer. Time without a fetch is not credited.
    """

    def __init__(self, max_messages_per_second: float) -> None:
        self._limit = max_messages_per_second
        self._free_at = float("-inf")

    def delay(self, now: float) -> float:
        """Seconds until the next fetch may begin; 0: at once."""
        return max(0.0, self._free_at - now)

    def batch_size(self, configured: int, queue_count: int) -> int:
        """Messages per fetch, so that ``queue_count`` concurrent fetches return about a second's worth."""
        return max(1, int(min(configured, self._limit / max(1, queue_count))))

    def fetched(self, count: int, now: float) -> None:
        """Count the messages of an answer against the limit."""
        self._free_at = max(self._free_at, now) + count / self._limit
