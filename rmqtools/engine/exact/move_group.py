"""Finds where a group goes on in a copy: by binary search of the position in the marks of its messages."""

from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.tail import read_marks
from rmqtools.model.append_mark import AppendMark
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.exact_append import check_origin

_FIRST_LOOK, _LONGEST_LOOK = 32, 8192  # messages


async def find_copy(client: ClientCore, queue: MessageQueue, writer: str, origin: str, position: int) -> int:
    """Return the offset of the first message of a writer that has this position or a later one.

    The end of the queue, if there is none. Messages of others may stand in between.

    Raises:
        ExactAppendError: the writer's messages came from another queue.
    """
    admin = QueueAdmin(client)
    low, high = await admin.min_offset(queue), await admin.max_offset(queue)
    best = high
    while low < high:
        middle = (low + high) // 2
        found = await _first_mark(client, queue, writer, middle, high)
        if found is None:
            high = middle
            continue
        check_origin(queue, found[1], origin)
        if found[1].position >= position:
            best, high = found[0], middle
        else:
            low = found[0] + 1
    return best


async def _first_mark(
    client: ClientCore, queue: MessageQueue, writer: str, begin: int, end: int
) -> tuple[int, AppendMark] | None:
    """Return the first message of a writer in a range: its offset and mark; None: there is none."""
    size = _FIRST_LOOK
    while begin < end:
        stop = min(end, begin + size)
        for queue_offset, mark in await read_marks(client, queue, begin, stop):
            if mark is not None and mark.writer == writer:
                return queue_offset, mark
        begin, size = stop, min(_LONGEST_LOOK, 2 * size)
    return None
