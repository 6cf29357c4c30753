"""The end of a queue as the memory of its writer: the last message, and numbers kept at the broker.

    FROM    what is copied to this queue    only a mirror: see ``policy.mirror.Pair``
    LAST    offset of its last message      a start reads from there on; the message itself is the judge
    SEEN    time of the message before      only a mirror: when its source stored what it read last
    NEXT    next position                   all before is stored, or was left out

Each is the offset of a group, which does not expire. They are stored in this order, so that no crash leaves a
NEXT that is ahead of the others.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin, fetch_consumer_offset
from rmqtools.engine.admin.masters import Masters
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.reading.read_messages import read_messages
from rmqtools.errors import DataLossError, ExactAppendError
from rmqtools.model.append_mark import APPEND_MARK, EXACT_GROUP_PREFIX, AppendMark, parse_mark
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.policy.exact_append import (
    Since,
    Tail,
    check_alone,
    check_last,
    check_nothing_found,
    check_origin,
    check_since,
    count_stored,
)

LAST, NEXT, SEEN, FROM = "", "%NEXT", "%SEEN", "%FROM"
_ORDER = (FROM, LAST, SEEN, NEXT)
LONGEST_KIND = max(map(len, _ORDER))


@dataclass(slots=True)
class Scan:
    """The marks of a part of a queue.

    Attributes:
        last: offset and mark of the writer's message with the highest position, the first of them. Copies
            that another program has sent again have lower ones, wherever they are.
        first: offset and mark of the writer's first message there.
        count: how many messages it has there, without those of earlier work.
        others: the writers of other marks, by origin.
    """

    last: tuple[int, AppendMark] | None = None
    first: tuple[int, AppendMark] | None = None
    count: int = 0
    others: dict[str, str] = field(default_factory=dict)


class WriterMemory:
    """The messages of one writer in its queue, and its numbers at the queue's broker."""

    def __init__(self, client: ClientCore, queue: MessageQueue, writer: str) -> None:
        self._client = client
        self.queue = queue
        self.writer = writer
        self._admin = GroupOffsetAdmin(client)
        self._numbers: dict[str, int] = {}

    @property
    def group(self) -> str:
        """The group that has the writer's locks, and LAST."""
        return EXACT_GROUP_PREFIX + self.writer

    async def fetch(self, kind: str) -> int | None:
        """Return a number; None: it was never stored."""
        return await fetch_number(self._client, self.group + kind, self.queue)

    def put(self, kind: str, number: int | None) -> None:
        """Set a number, to be stored later; None: it is not known. Brokers have 63 bits for it."""
        if number is not None and number < 2**63:
            self._numbers[kind] = number

    async def store(self) -> None:
        """Store all numbers: a broker that was started again may have lost the last ones."""
        for kind in _ORDER:
            if kind in self._numbers:
                await self._admin.update_consumer_offset(self.group + kind, self.queue, self._numbers[kind])

    async def bounds(self) -> tuple[int, int]:
        """Return the first offset of the queue that is stored, and the next one."""
        return await self._admin.min_offset(self.queue), await self._admin.max_offset(self.queue)

    async def marks(self, begin: int, end: int) -> AsyncIterator[tuple[int, AppendMark]]:
        """Yield offset and mark of each marked message in a part of the queue, of other writers, too."""
        async for message in read_range(self._client, self.queue, begin, end):
            if (mark := parse_mark(message.properties.get(APPEND_MARK))) is not None:
                yield message.queue_offset, mark

    async def scan(self, begin: int, end: int, *, lowest: int = 0) -> Scan:
        """Read all marks of a part of the queue.

        ``lowest``: messages with a lower position belong to earlier work, or are old ones sent again.

        Raises:
            ExactAppendError: messages expired meanwhile.
        """
        found = Scan()
        try:
            async for offset, mark in self.marks(begin, end):
                if mark.writer != self.writer:
                    found.others[mark.origin] = mark.writer
                    continue
                if found.first is None:
                    found.first = (offset, mark)
                found.count += mark.position >= lowest
                if mark.position >= (lowest if found.last is None else found.last[1].position + 1):
                    found.last = (offset, mark)
        except DataLossError as error:
            raise ExactAppendError(f"the end of {self.queue} cannot be read: {error}") from error
        return found

    async def last_mark(self, begin: int = 0) -> AppendMark | None:
        """Return the mark of the writer's last message from an offset on; None: it has none there."""
        low, end = await self.bounds()
        last = (await self.scan(max(begin, low), end)).last
        return None if last is None else last[1]

    async def settle(
        self, before: Tail, positions: Sequence[int], *, origin: str, lowest: int
    ) -> tuple[Tail, int]:
        """Find out how many messages of an unknown outcome are stored behind the end of before.

        Raises:
            ExactAppendError: the queue has lost its end, or another process has written with this name.
        """
        begin, end = await self.bounds()
        check_since(self.queue, before.end, min_offset=begin, end=end)
        found, known = await self._scan_behind(before, begin, end, lowest)
        tail = self._tail(found, end, before.next_position, origin)
        position = before.position if tail.position is None else tail.position
        stored = count_stored(self.queue, positions, before=before.position, found=position)
        check_alone(self.queue, found.last, found=found.count, sent=stored + known)
        return replace(before, end=end) if tail.position is None else tail, stored

    async def check_others(self, before: Tail, end: int, *, lowest: int) -> None:
        """Check that between the end of before and an offset only others have written.

        Raises:
            ExactAppendError: the queue has lost its end, or another process has written with this name.
        """
        begin = await self._admin.min_offset(self.queue)
        found, known = await self._scan_behind(before, begin, end, lowest)
        check_alone(self.queue, found.last, found=found.count, sent=known)

    async def _scan_behind(self, before: Tail, begin: int, end: int, lowest: int) -> tuple[Scan, int]:
        """Read from the last known message on, which must be there; also return 1, or 0 if it has expired."""
        last = before.queue_offset
        known = int(last is not None and last >= begin)
        found = await self.scan(last if last is not None and known else before.end, end, lowest=lowest)
        check_last(
            self.queue, self.writer, last=last, min_offset=begin, first=found.first, position=before.position
        )
        return found, known

    async def find_tail(self, *, origin: str, is_new: bool, since: Since | None = None) -> Tail:
        """Find out what the writer has stored.

        Args:
            origin: what its positions count.
            is_new: whether it has never written there.
            since: where its present work begins; None: as the numbers say.

        Raises:
            ExactAppendError: the queue contradicts what is known.
        """
        if since is not None:
            begin, end = await self.bounds()
            check_since(self.queue, since.queue_offset, min_offset=begin, end=end)
            found = await self.scan(since.queue_offset, end, lowest=since.position)
            return self._tail(found, end, since.position, origin)
        following, last, seen_ms = [await self.fetch(kind) for kind in (NEXT, LAST, SEEN)]
        begin, end = await self.bounds()
        found = await self.scan(max(begin, last or 0), end)
        check_last(self.queue, self.writer, last=last, min_offset=begin, first=found.first)
        if found.last is None and following is None:
            check_nothing_found(
                self.queue,
                self.writer,
                origin,
                min_offset=begin,
                last=last,
                is_new=is_new,
                others=found.others,
            )
        noted = None if seen_ms is None or following is None else (following, seen_ms)
        return self._tail(found, end, following, origin, noted)

    def _tail(
        self,
        found: Scan,
        end: int,
        following: int | None,
        origin: str,
        noted: tuple[int, int] | None = None,
    ) -> Tail:
        if found.last is None:
            return Tail(None, None, end, following, noted=noted)
        offset, mark = found.last
        check_origin(self.queue, mark, origin)
        next_position = max(mark.position + 1, following or 0)
        return Tail(mark.position, offset, end, next_position, mark.source_ms, noted)


async def fetch_number(client: ClientCore, group: str, queue: MessageQueue) -> int | None:
    """Return a number that was stored as the offset of a group; None: it was never stored."""
    wire_group, wire_topic = client.wire_topic(group), client.wire_topic(queue.topic)
    return await fetch_consumer_offset(Masters(client), wire_group, wire_topic, queue)


async def read_range(
    client: ClientCore, queue: MessageQueue, begin: int, end: int
) -> AsyncIterator[MessageExt]:
    """Yield the messages of a part of a queue; a body that cannot be decompressed stays as it is stored."""
    if begin >= end:
        return
    found = read_messages(
        client,
        QueueRange(queue, begin, end),
        max_messages=1024,
        max_bytes=4 * 1024 * 1024,
        corrupt_body="raw",
    )
    async for messages in found:
        for message in messages:
            yield message
