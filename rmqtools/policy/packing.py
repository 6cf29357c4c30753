"""Which messages go together into one batch."""

from collections.abc import Iterator, Sequence

from rmqtools.model.message import Message, message_texts

# Lengths around a message in a batch; names of TAGS, KEYS, sharding key; WAIT; a unique id made of IPv6.
_FRAMING_BYTES = 22 + (6 + 6 + 15) + 10 + 66


def pack(messages: Sequence[Message], max_bytes: int) -> Iterator[list[int]]:
    """Cut messages into groups that can share a batch, as the numbers they have in ``messages``.

    A group has one topic and at most ``max_bytes``; a message larger than that, or with a delay, is alone.
    Within a topic the order stays: a group is handed out before the next of its topic begins.
    """
    open_groups: dict[str, tuple[list[int], int]] = {}
    for number, message in enumerate(messages):
        if message.is_delayed:
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
    """About how many bytes a message takes in a batch; never fewer than one without delay does."""
    text = "".join(message_texts(message))
    text_bytes = len(text) if text.isascii() else len(text.encode())
    return len(message.body) + text_bytes + 2 * len(message.properties) + _FRAMING_BYTES
