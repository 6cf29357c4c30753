"""Cuts offset ranges of queues into Spark tasks; pure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rmqtools import MessageQueue, QueueRange


def plan_ranges(
    begin: Mapping[MessageQueue, int],
    end: Mapping[MessageQueue, int],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[QueueRange]:
    """Cut offset maps into ranges, one Spark task each.

    Args:
        begin: first queue offset to read, per queue (inclusive).
        end: where to stop, per queue (exclusive). Same keys as ``begin``.
        min_partitions: split large ranges until there are about this many; None: one per queue.
        max_records: split every range longer than this.

    Returns:
        Non-empty ranges, by queue then offset; together exactly ``[begin, end)`` of every queue.

    Raises:
        ValueError: a queue would end before it begins.

    Source of the rule: KafkaOffsetRangeCalculator (Spark's Kafka source).
    """
    for queue in sorted(begin):
        if begin[queue] > end[queue]:
            raise ValueError(
                f"{queue.topic}/{queue.broker_name}/{queue.queue_id} would be read from {begin[queue]} "
                f"to {end[queue]}: set startingOffsets at or before endingOffsets"
            )
    whole = [QueueRange(queue, begin[queue], end[queue]) for queue in sorted(begin)]
    ranges = [part for range_ in whole for part in _split(range_, _parts_by_size(range_, max_records))]
    if min_partitions is None or len(ranges) >= min_partitions:
        return ranges
    return _split_large(ranges, min_partitions)


def gather_ranges(ranges: Sequence[QueueRange], rows: int) -> list[tuple[QueueRange, ...]]:
    """Combine neighboring ranges into tasks of at least ``rows`` messages; the last may have fewer."""
    groups: list[list[QueueRange]] = []
    count = rows
    for range_ in ranges:
        if count >= rows:
            groups.append([])
            count = 0
        groups[-1].append(range_)
        count += len(range_)
    return [tuple(group) for group in groups]


def _parts_by_size(range_: QueueRange, max_records: int | None) -> int:
    return 1 if max_records is None else -(-len(range_) // max_records)


def _split_large(ranges: Sequence[QueueRange], min_partitions: int) -> list[QueueRange]:
    """Split in proportion to length. Small ranges stay whole and are not counted."""
    total = sum(map(len, ranges))
    small = {range_ for range_ in ranges if _share(range_, total, min_partitions) == 1}
    rest = total - sum(map(len, small))
    wanted = max(min_partitions - len(small), 1)
    return [
        part
        for range_ in ranges
        for part in _split(range_, 1 if range_ in small else _share(range_, rest, wanted))
    ]


def _share(range_: QueueRange, total: int, parts: int) -> int:
    return max(int(len(range_) / total * parts + 0.5), 1)


def _split(range_: QueueRange, parts: int) -> list[QueueRange]:
    """Cut into at most ``parts`` pieces whose lengths differ by at most 1; an empty range gives none."""
    parts = max(min(parts, len(range_)), 1)
    cuts = [range_.begin + len(range_) * part // parts for part in range(parts + 1)]
    return [QueueRange(range_.queue, *cut) for cut in pairwise(cuts) if len(range_)]
