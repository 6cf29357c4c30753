"""Flow control: whether a queue may be pulled, or its member must first consume the messages it holds.

Source of the rules: DefaultMQPushConsumerImpl.pullMessage, RebalancePushImpl.messageQueueChanged (Java
client). Java compares sizes in whole MiB and so stops up to one MiB later; here sizes are bytes.
"""

from dataclasses import dataclass, replace

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """The unconsumed messages that a member holds of a queue; ``span`` is largest minus smallest offset."""

    count: int = 0
    size_bytes: int = 0
    span: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PullThresholds:
    """Bounds of one queue's held messages; pulling pauses above them, not at them."""

    max_count: int = 1000  # upstream pullThresholdForQueue
    max_size_bytes: int = 100 * MIB  # upstream pullThresholdSizeForQueue
    max_span: int | None = 2000  # upstream consumeConcurrentlyMaxSpan; None for ordered consumption

    def shared(
        self, queue_count: int, *, topic_count: int | None = None, topic_size_bytes: int | None = None
    ) -> "PullThresholds":
        """Return these limits; a limit of the topic is divided among the member's queues.

        ``queue_count`` counts all queues of the member, of every topic, as in Java. A queue gets at least
        one message and one MiB.
        """
        if queue_count <= 0:
            return self
        return replace(
            self,
            max_count=_share(topic_count, queue_count, 1) or self.max_count,
            max_size_bytes=_share(topic_size_bytes, queue_count, MIB) or self.max_size_bytes,
        )


@dataclass(frozen=True, slots=True)
class Exceeded:
    """An exceeded limit: its name in :class:`PullThresholds`, the actual value, the allowed value."""

    name: str
    value: int
    limit: int


def exceeded_threshold(cached: Cached, thresholds: PullThresholds) -> Exceeded | None:
    """Return the first limit that forbids pulling; None if the queue may be pulled."""
    if cached.count > thresholds.max_count:
        return Exceeded("max_count", cached.count, thresholds.max_count)
    if cached.size_bytes > thresholds.max_size_bytes:
        return Exceeded("max_size_bytes", cached.size_bytes, thresholds.max_size_bytes)
    if thresholds.max_span is not None and cached.span > thresholds.max_span:
        return Exceeded("max_span", cached.span, thresholds.max_span)
    return None


def _share(of_topic: int | None, queue_count: int, least: int) -> int | None:
    return None if of_topic is None else max(least, of_topic // queue_count)


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
        return max(1, min(configured, int(self._limit / max(1, queue_count))))

    def fetched(self, count: int, now: float) -> None:
        """Count the messages of an answer against the limit."""
        self._free_at = max(self._free_at, now) + count / self._limit
