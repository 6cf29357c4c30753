"""Groups messages into batches."""

from collections.abc import Iterator, Sequence

from rmqtools.model.message import Message, body_length, message_texts

# Lengths around a message in a batch; names of TAGS, KEYS, sharding key; WAIT; a unique id made of IPv6.
_FRAMING_BYTES = 22 + (6 + 6 + 15) + 10 + 66


def pack(messages: Sequence[Message], max_bytes: int) -> Iterator[list[int]]:
    """Divide messages into groups that can share a batch. Yields their indexes in ``messages``.

    A group has one topic and at most ``max_bytes``; a larger message, or one with a delay or
    a priority, is alone. Within a topic the order is kept: a group is yielded before the next group of its
    topic begins.
    """
    open_groups: dict[str, tuple[list[int], int]] = {}
    for number, message in enumerate(messages):
        if message.is_alone:
            yield [number]
            continue
        size = wire_bytes(message)
        numbers, total = open_groups.get(message.topic, ([], 0))
        if numbers and total + size > max_bytes:
            yield numbers
            numbers, total = [], 0
        numbers.append(number)
        open_groups[message.topic] = (numbers, total + size)
    yield from (numbers for numbers, _ in open_groups.values())


def wire_bytes(message: Message) -> int:
    """Estimate the bytes of a message in a batch; never less than a message without delay takes."""
    text = "".join(message_texts(message))
    text_bytes = len(text) if text.isascii() else len(text.encode())
    return body_length(message.body) + text_bytes + 2 * len(message.properties) + _FRAMING_BYTES
