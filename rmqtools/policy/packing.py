"""Groups messages into batches."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from rmqtools.model.message import Message, may_share_batches, topic_of


def pack(
    messages: Sequence[Message], sizes: Sequence[int], max_bytes: int, *, all_share: bool | None = None
) -> Iterator[Sequence[int]]:
    """Divide messages into groups that can share a batch. Yields their indexes in ``messages``.

    A group has one topic and at most ``max_bytes``; a larger message, or one with a delay or
    a priority, is alone. Within a topic the order is kept: a group is yielded before the next group of its
    topic begins. Groups of a single topic are ranges.

    Args:
        messages: of any topics.
        sizes: the bytes that each message takes in a batch.
        max_bytes: of a group.
        all_share: whether no message has a delay or a priority; None: it is not known.
    """
    if all_share is None:
        all_share = may_share_batches(messages)
    if all_share and len({*map(topic_of, messages)}) == 1:
        yield from cut(sizes, max_bytes)
        return
    open_groups: dict[str, tuple[list[int], int]] = {}
    for number, (message, size) in enumerate(zip(messages, sizes, strict=True)):
        if not all_share and message.is_alone:
            yield [number]
            continue
        numbers, total = open_groups.get(message.topic, ([], 0))
        if numbers and total + size > max_bytes:
            yield numbers
            numbers, total = [], 0
        numbers.append(number)
        open_groups[message.topic] = (numbers, total + size)
    yield from (numbers for numbers, _ in open_groups.values())


def cut(sizes: Sequence[int], max_bytes: int) -> Iterator[range]:
    """As :func:`pack`, of messages of one topic, of which each may share a batch."""
    if sum(sizes) <= max_bytes:
        yield range(len(sizes))
        return
    ends = [0, *accumulate(sizes)]
    begin = 0
    while begin < len(sizes):
        end = max(begin + 1, bisect_right(ends, ends[begin] + max_bytes) - 1)
        yield range(begin, end)
        begin = end
