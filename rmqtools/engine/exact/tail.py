"""Reads marks in a queue: the last one of a writer, backwards from the end."""

from collections.abc import AsyncIterator

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.reading.read_messages import read_messages
from rmqtools.errors import DataLossError, ExactAppendError
from rmqtools.model.append_mark import APPEND_MARK, AppendMark, parse_mark
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.policy.exact_append import last_mark, windows

Marks = list[tuple[int, AppendMark | None]]
"""Offsets of messages, and their marks."""


async def read_range(
    client: ClientCore, queue: MessageQueue, begin: int, end: int
) -> AsyncIterator[MessageExt]:
    """Yield the messages of a part of a queue; a body that cannot be read does no harm."""
    found = read_messages(
        client,
        QueueRange(queue, begin, end),
        max_messages=1024,
        max_bytes=4 * 1024 * 1024,
        corrupt_body="null",
    )
    async for messages in found:
        for message in messages:
            yield message


async def read_marks(client: ClientCore, queue: MessageQueue, begin: int, end: int) -> Marks:
    """Return the marks of a part of a queue.

    Raises:
        ExactAppendError: messages expired meanwhile.
    """
    try:
        return [
            (message.queue_offset, parse_mark(message.properties.get(APPEND_MARK)))
            async for message in read_range(client, queue, begin, end)
        ]
    except DataLossError as error:
        raise ExactAppendError(f"the end of {queue} cannot be read: {error}") from error


async def find_last(
    client: ClientCore, queue: MessageQueue, writer: str, begin: int, end: int, *, lowest: int = 0
) -> tuple[int, AppendMark] | None:
    """Return the last message of a writer in ``[begin, end)``: offset and mark; None: there is none.

    The message at ``begin``, which the writer may have named as its own, is read too, because the marks at
    the end may be those of copies.

    ``lowest``: messages with a lower position belong to earlier work.
    """
    for start, stop in windows(begin, end):
        marks = await read_marks(client, queue, start, stop)
        if last_mark(marks, writer, lowest=lowest) is not None:
            named = [] if start == begin else await read_marks(client, queue, begin, begin + 1)
            return last_mark([*named, *marks], writer, lowest=lowest)
    return None
