"""Whether a queue may be pulled, or its member first has to get through what it has.

Source of the rules: DefaultMQPushConsumerImpl.pullMessage, RebalancePushImpl.messageQueueChanged (Java
client). Java compares sizes in whole MiB and so stops up to one MiB later; here sizes are bytes.
"""

from dataclasses import dataclass, replace

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """What a member holds of one queue and has not consumed; ``span`` is largest minus smallest offset."""

    count: int = 0
    size_bytes: int = 0
    span: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PullThresholds:
    """How much of one queue may be held before it is pulled no more; equal to a limit is still fine."""

    max_count: int = 1000  # upstream pullThresholdForQueue
    max_size_bytes: int = 100 * MIB  # upstream pullThresholdSizeForQueue
    max_span: int | None = 2000  # upstream consumeConcurrentlyMaxSpan; None: ordered, where it has no meaning

    def shared(
        self, queue_count: int, *, topic_count: int | None = None, topic_size_bytes: int | None = None
    ) -> "PullThresholds":
        """These, where limits of a topic are set, as one queue's share of them.

        ``queue_count`` is of all queues the member owns, of every topic, as in Java. A share is never less
        than one message and one MiB.
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
    """The limit that is exceeded: its name in :class:`PullThresholds`, what there is, what is allowed."""

    name: str
    value: int
    limit: int


def exceeded_threshold(cached: Cached, thresholds: PullThresholds) -> Exceeded | None:
    """The first limit that forbids to pull now; None where the queue may be pulled."""
    if cached.count > thresholds.max_count:
        return Exceeded("max_count", cached.count, thresholds.max_count)
    if cached.size_bytes > thresholds.max_size_bytes:
        return Exceeded("max_size_bytes", cached.size_bytes, thresholds.max_size_bytes)
    if thresholds.max_span is not None and cached.span > thresholds.max_span:
        return Exceeded("max_span", cached.span, thresholds.max_span)
    return None


def _share(of_topic: int | None, queue_count: int, least: int) -> int | None:
    return None if of_topic is None else max(least, of_topic // queue_count)
