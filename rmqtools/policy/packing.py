"""Groups messages into batches."""

from collections.abc import Iterator, Sequence

from rmqtools.model.message import Message, may_share_batches


def pack(messages: Sequence[Message], sizes: Sequence[int], max_bytes: int) -> Iterator[list[int]]:
    """Divide messages into groups that can share a batch. Yields their indexes in ``messages``.

    A group has one topic and at most ``max_bytes``; a larger message, or one with a delay or
    a priority, is alone. Within a topic the order is kept: a group is yielded before the next group of its
    topic begins. ``sizes``: the bytes that each message takes in a batch.
    """
    open_groups: dict[str, tuple[list[int], int]] = {}
    all_share = may_share_batches(messages)
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
