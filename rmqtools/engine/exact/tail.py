"""The end of a queue as the memory of its writer: the last message, and numbers kept at the broker.

    FROM    what is copied to this queue    only a mirror: see ``policy.mirror.Pair``
    LAST    offset of its last message      a start reads from there on; the message itself is the judge
    SEEN    time of the message before      only a mirror: when its source stored what it read last
    NEXT    next position                   all before is stored, or was left out

Each is the offset of a group, which does not expire. They are stored in this order, so that no crash leaves a
NEXT that is ahead of the others.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin, fetch_consumer_offset
from rmqtools.engine.admin.masters import Masters
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.reading.read_messages import read_messages
from rmqtools.errors import DataLossError, ExactAppendError
from rmqtools.model.append_mark import APPEND_MARK, EXACT_GROUP_PREFIX, AppendMark, parse_mark
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.policy.exact_append import (
    Since,
    Tail,
    check_end,
    check_last,
    check_nothing_found,
    check_origin,
    check_since,
)

LAST, NEXT, SEEN, FROM = "", "%NEXT", "%SEEN", "%FROM"
_ORDER = (FROM, LAST, SEEN, NEXT)
LONGEST_KIND = max(map(len, _ORDER))


class WriterNumbers:
    """The numbers of one writer in one queue."""

    def __init__(self, client: ClientCore, queue: MessageQueue, writer: str) -> None:
        self._client, self.queue, self.writer = client, queue, writer
        self._admin = GroupOffsetAdmin(client)
        self._given: dict[str, int] = {}
        self._stored: dict[str, int] = {}

    @property
    def group(self) -> str:
        """The group that has the writer's locks, and LAST."""
        return EXACT_GROUP_PREFIX + self.writer

    async def fetch(self, kind: str) -> int | None:
        """Return a number; None: it was never stored."""
        group, topic = (self._client.wire_topic(name) for name in (self.group + kind, self.queue.topic))
        return await fetch_consumer_offset(Masters(self._client), group, topic, self.queue)

    async def last_mark(self, begin: int, end: int) -> AppendMark | None:
        """Return the mark of the writer's last message in a part of the queue; None: it has none there."""
        begin = max(begin, await self._admin.min_offset(self.queue))
        end = min(end, await self._admin.max_offset(self.queue))
        last = (await scan(self._client, self.queue, self.writer, begin, end)).last if begin < end else None
        return None if last is None else last[1]

    def put(self, kind: str, number: int | None) -> None:
        """Set a number, to be stored later; None: it is not known. Brokers have 63 bits for it."""
        if number is not None and number < 2**63:
            self._given[kind] = number

    async def store(self) -> None:
        """Store the numbers that have changed."""
        for kind in _ORDER:
            number = self._given.get(kind)
            if number is not None and self._stored.get(kind) != number:
                await self._admin.update_consumer_offset(self.group + kind, self.queue, number)
                self._stored[kind] = number

    def forget(self) -> None:
        """Store all of them again: a broker that was started again may have lost the last ones."""
        self._stored.clear()


@dataclass(slots=True)
class Scan:
    """The marks of a part of a queue.

    Attributes:
        last: offset and mark of the writer's message with the highest position, the first of them. Copies
            that another program has sent again have lower ones, wherever they are.
        first: offset of the writer's first message there.
        others: the writers of other marks, by origin.
    """

    last: tuple[int, AppendMark] | None = None
    first: int | None = None
    others: dict[str, str] = field(default_factory=dict)


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


async def own_marks(
    client: ClientCore, queue: MessageQueue, writer: str, begin: int, end: int
) -> AsyncIterator[tuple[int, AppendMark]]:
    """Yield offset and mark of each message of a writer in a part of a queue."""
    async for message in read_range(client, queue, begin, end):
        mark = parse_mark(message.properties.get(APPEND_MARK))
        if mark is not None and mark.writer == writer:
            yield message.queue_offset, mark


async def scan(client: ClientCore, queue: MessageQueue, writer: str, begin: int, end: int) -> Scan:
    """Read all marks of a part of a queue.

    Raises:
        ExactAppendError: messages expired meanwhile.
    """
    found = Scan()
    try:
        async for message in read_range(client, queue, begin, end):
            mark = parse_mark(message.properties.get(APPEND_MARK))
            if mark is None:
                continue
            if mark.writer != writer:
                found.others[mark.origin] = mark.writer
                continue
            if found.first is None:
                found.first = message.queue_offset
            if found.last is None or mark.position > found.last[1].position:
                found.last = (message.queue_offset, mark)
    except DataLossError as error:
        raise ExactAppendError(f"the end of {queue} cannot be read: {error}") from error
    return found


async def find_last(
    client: ClientCore, queue: MessageQueue, writer: str, begin: int, end: int, *, lowest: int = 0
) -> tuple[int, AppendMark] | None:
    """Return the last message of a writer in ``[begin, end)``: offset and mark; None: there is none.

    ``lowest``: messages with a lower position belong to earlier work, or are old ones sent again.
    """
    last = (await scan(client, queue, writer, begin, end)).last
    return None if last is None or last[1].position < lowest else last


async def find_tail(
    client: ClientCore, numbers: WriterNumbers, *, origin: str, is_new: bool, since: Since | None = None
) -> Tail:
    """Find out what a writer has stored in its queue.

    Args:
        client: of the target.
        numbers: those of the writer.
        origin: what its positions count.
        is_new: whether it has never written there.
        since: where its present work begins; None: as the numbers say.

    Raises:
        ExactAppendError: the queue contradicts what is known.
    """
    queue, writer, admin = numbers.queue, numbers.writer, QueueAdmin(client)
    following = await numbers.fetch(NEXT) if since is None else since.position
    last = await numbers.fetch(LAST) if since is None else None
    seen_ms = await numbers.fetch(SEEN) if since is None else None
    noted = None if seen_ms is None or following is None else (following, seen_ms)
    begin, end = await admin.min_offset(queue), await admin.max_offset(queue)
    if since is not None:
        check_since(queue, since.queue_offset, min_offset=begin, end=end)
    check_end(queue, last=last, end=end)
    first = max(begin, last or 0, 0 if since is None else since.queue_offset)
    found = await scan(client, queue, writer, first, end)
    if since is None:
        check_last(queue, writer, last=last, min_offset=begin, first=found.first)
    if found.last is None or (since is not None and found.last[1].position < since.position):
        if following is None:
            check_nothing_found(
                queue, writer, origin, min_offset=begin, last=last, is_new=is_new, others=found.others
            )
        return Tail(None, None, end, following, noted=noted)
    queue_offset, mark = found.last
    check_origin(queue, mark, origin)
    return Tail(
        mark.position, queue_offset, end, max(mark.position + 1, following or 0), mark.source_ms, noted
    )
