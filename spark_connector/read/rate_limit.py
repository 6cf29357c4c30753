"""Computes the number of messages per queue in the next micro-batch; pure."""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from rmqtools import MessageQueue
from spark_connector.options.batch_limits import Limits


def admit(
    backlog: Mapping[MessageQueue, int], limits: Limits, mean_bytes: Mapping[MessageQueue, int]
) -> dict[MessageQueue, int]:
    """Share the limits of one batch among queues, in proportion to their backlogs.

    Args:
        backlog: waiting offsets per queue.
        limits: limits of the batch; ``min_offsets`` is checked by :func:`is_due`.
        mean_bytes: mean message size, 1 or more, per queue with a backlog; used if bytes are limited.

    Returns:
        Offsets to take per queue: together at most ``max_offsets``, but at least one of every queue with a
        backlog, so that small queues do not wait for large ones.

    Source of the rule: rateLimit of KafkaMicroBatchStream (Spark's Kafka source), which may exceed its limit.
    """
    counts = dict(backlog)
    if limits.max_offsets is not None:
        counts = share_limit(limits.max_offsets, counts)
    if limits.max_bytes is None:
        return counts
    granted = share_limit(
        limits.max_bytes, {queue: count * mean_bytes[queue] for queue, count in counts.items() if count}
    )
    return dict.fromkeys(counts, 0) | {
        queue: max(size // mean_bytes[queue], 1) for queue, size in granted.items()
    }


def share_limit(limit: int, wanted: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
    """Cut ``limit`` in proportion to the waiting numbers, at least one for each queue with any.

    The shares add up to exactly ``limit``, unless less is waiting, or more queues have some.
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
    """Take ``excess`` from the largest shares; each keeps one or more. ``shares`` is sorted, descending."""
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
    """Return whether the next batch may start: enough messages wait, or the last batch is long enough ago.

    Args:
        waiting: waiting offsets of all queues.
        waited: seconds since the last batch.

    Source of the rule: delayBatch of KafkaMicroBatchStream (Spark's Kafka source).
    """
    return limits.min_offsets is None or waiting >= limits.min_offsets or waited >= limits.max_delay
