"""How many messages of each queue the next micro-batch takes; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from rmqtools import MessageQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the options say about the size of a micro-batch; None: no limit. Seconds."""

    max_offsets: int | None = None
    max_bytes: int | None = None
    min_offsets: int | None = None
    max_delay: float = 15 * 60.0

    @property
    def any_given(self) -> bool:
        """Whether a batch may be less than everything there is."""
        return (self.max_offsets, self.max_bytes, self.min_offsets) != (None, None, None)


def admit(
    backlog: Mapping[MessageQueue, int], limits: Limits, mean_bytes: Mapping[MessageQueue, int]
) -> dict[MessageQueue, int]:
    """Share the limits of one batch among queues, in proportion to their backlogs.

    Args:
        backlog: offsets waiting per queue.
        limits: of the batch; ``min_offsets`` is :func:`is_due`'s business.
        mean_bytes: how large a message is, 1 or more, per queue that has any; used where bytes are limited.

    Returns:
        Offsets to take per queue: together no more than ``max_offsets``, but at least one of every queue that
        has any, so that small queues do not wait for large ones.

    Source of the rule: rateLimit of KafkaMicroBatchStream (Spark's Kafka source), which may exceed its limit.
    """
    counts = dict(backlog)
    if limits.max_offsets is not None:
        counts = share(limits.max_offsets, counts)
    if limits.max_bytes is None:
        return counts
    granted = share(
        limits.max_bytes, {queue: count * mean_bytes[queue] for queue, count in counts.items() if count}
    )
    return dict.fromkeys(counts, 0) | {
        queue: max(size // mean_bytes[queue], 1) for queue, size in granted.items()
    }


def share(limit: int, wanted: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
    """Cut ``limit`` in proportion to what is wanted, at least one for whoever wants any.

    The shares add up to ``limit`` exactly, unless less is wanted or there are more queues than that.
    """
    total = sum(wanted.values())
    if total <= limit:
        return dict(wanted)
    queues = sorted(wanted, key=lambda queue: (wanted[queue], queue.sort_key), reverse=True)
    exact = {queue: divmod(wanted[queue] * limit, total) for queue in queues}
    shares = {queue: max(exact[queue][0], min(wanted[queue], 1)) for queue in queues}
    left = limit - sum(shares.values())
    if left > 0:
        rounded_down = [queue for queue in queues if exact[queue][0] == shares[queue]]
        for queue in sorted(rounded_down, key=lambda queue: -exact[queue][1])[:left]:
            shares[queue] += 1
    return _without(-left, shares) if left < 0 else shares


def _without(excess: int, shares: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
    """Take so many from the largest shares, as far as each keeps one; ``shares`` is sorted, largest first."""
    heap = [(-count, -place, queue) for place, (queue, count) in enumerate(shares.items()) if count > 1]
    heapify(heap)
    taken = dict(shares)
    for _ in range(excess):
        if not heap:
            break
        count, place, queue = heappop(heap)
        taken[queue] -= 1
        if count < -2:
            heappush(heap, (count + 1, place, queue))
    return taken


def is_due(waiting: int, waited: float, limits: Limits) -> bool:
    """Whether a batch is worth its start: enough messages wait, or have waited long enough.

    Args:
        waiting: offsets of all queues.
        waited: seconds since the batch before.

    Source of the rule: delayBatch of KafkaMicroBatchStream (Spark's Kafka source).
    """
    return limits.min_offsets is None or waiting >= limits.min_offsets or waited >= limits.max_delay
