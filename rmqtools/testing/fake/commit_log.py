"""The store of one broker: a commit log, and queues that point into it.

Source of the rules: DefaultMessageStore, ConsumeQueue (broker 5.5.0).
"""

import bisect
from collections.abc import Callable
from dataclasses import dataclass, replace

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import BoundaryType
from rmqtools.model.message import MessageExt
from rmqtools.policy.selectors import java_hash_code
from rmqtools.protocol.messages.stored import decode_message
from rmqtools.testing.fake.messages import encode_with_body

QueueKey = tuple[str, int]
"""A topic and a queue id."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored message: its bytes, and its index entry in the queue."""

    data: bytes
    queue_offset: int
    commit_log_offset: int
    tags_code: int
    store_timestamp_ms: int

    def decode(self, broker_name: str, *, decompress: bool = True) -> MessageExt:
        """Return the message."""
        return decode_message(self.data, decompress_body=decompress, broker_name=broker_name)


class QueueLog:
    """The messages of one queue. An entry is None where the message was erased."""

    def __init__(self) -> None:
        self.min_offset = 0
        self._first = 0
        self._entries: list[Entry | None] = []
        self._hidden = 0

    @property
    def max_offset(self) -> int:
        """One more than the offset of the last message that is visible."""
        return self._first + len(self._entries)

    @property
    def next_offset(self) -> int:
        """The offset of the next message."""
        return self.max_offset + self._hidden

    def hide(self) -> None:
        """Count a message that is stored, and not visible yet."""
        self._hidden += 1

    def show(self, entry: Entry) -> None:
        """Add a message at the end that was hidden."""
        self._hidden -= 1
        self.append(entry)

    def append(self, entry: Entry) -> None:
        """Add a message at the end."""
        self._entries.append(entry)

    def at(self, offset: int) -> Entry | None:
        """Return the message at an offset; None: there is none, as where it was erased."""
        is_there = max(self._first, self.min_offset) <= offset < self.max_offset
        return self._entries[offset - self._first] if is_there else None

    def entries(self) -> list[Entry]:
        """All messages except erased ones."""
        return [entry for entry in self._entries[self.min_offset - self._first :] if entry is not None]

    def begin_at(self, offset: int) -> None:
        """Delete all messages before ``offset``. If it is after the end, the next message gets it."""
        if offset > self.max_offset:
            self._first, self._entries = offset, []
        self.min_offset = offset

    def end_at(self, offset: int) -> None:
        """Delete the messages from ``offset`` on: the next message gets it."""
        del self._entries[max(0, offset - self._first) :]
        self.min_offset = min(self.min_offset, self.max_offset)

    def erase(self, offset: int) -> None:
        """Delete one message, and keep its offset."""
        self._entries[offset - self._first] = None

    def search(self, timestamp_ms: int, boundary: BoundaryType) -> int:
        """Search the offset of a time: the first message stored then or later; UPPER: the last until then."""
        entries = self.entries()
        if not entries:
            return self.min_offset
        times = [entry.store_timestamp_ms for entry in entries]
        if boundary is BoundaryType.LOWER:
            found = bisect.bisect_left(times, timestamp_ms)
            return entries[found].queue_offset if found < len(entries) else self.max_offset
        found = bisect.bisect_right(times, timestamp_ms)
        return entries[max(found - 1, 0)].queue_offset


class CommitLog:
    """All messages of one broker, at most ``max_bytes``.

    ``on_append`` is called with the queue and entry of each new message.
    """

    def __init__(
        self, broker_name: str, max_bytes: int, on_append: Callable[[QueueKey, Entry], None]
    ) -> None:
        self.broker_name = broker_name
        self._max_bytes = max_bytes
        self._on_append = on_append
        self._queues: dict[QueueKey, QueueLog] = {}
        self._by_place: dict[int, Entry] = {}
        self._end = 0
        self._hides = False
        self._hidden: list[tuple[QueueKey, Entry]] = []

    @property
    def is_full(self) -> bool:
        """True if no more messages are accepted."""
        return self._end >= self._max_bytes

    def queue(self, topic: str, queue_id: int) -> QueueLog:
        """One queue; created if missing."""
        return self._queues.setdefault((topic, queue_id), QueueLog())

    def queue_ids(self, topic: str) -> list[int]:
        """Return the queues of a topic that have been used."""
        return sorted(queue_id for name, queue_id in self._queues if name == topic)

    def delete(self, topic: str) -> None:
        """Delete the queues of a topic."""
        for key in [key for key in self._queues if key[0] == topic]:
            del self._queues[key]

    def append(self, message: MessageExt) -> Entry:
        """Store a message at the end of its queue; its offsets are set here."""
        queue = self.queue(message.topic, message.queue_id)
        placed = replace(
            message,
            queue_offset=queue.next_offset,
            commit_log_offset=self._end,
            body_crc=0,
            store_size_bytes=0,
        )
        data = encode_with_body(placed)
        code = java_hash_code(message.tags) if message.tags else 0
        entry = Entry(data, placed.queue_offset, self._end, code, message.store_timestamp_ms)
        self._by_place[self._end] = entry
        self._end += len(data)
        key = (message.topic, message.queue_id)
        if self._hides:
            queue.hide()
            self._hidden.append((key, entry))
        else:
            queue.append(entry)
            self._on_append(key, entry)
        return entry

    def hide_new(self) -> None:
        """Make no new message visible, as a broker does whose dispatching lags behind."""
        self._hides = True

    def show_all(self) -> None:
        """Make all messages visible, in the order in which they were stored."""
        self._hides, hidden, self._hidden = False, self._hidden, []
        for key, entry in hidden:
            self.queue(*key).show(entry)
            self._on_append(key, entry)

    def look_up(self, commit_log_offset: int) -> MessageExt | None:
        """Return the message at a commit log offset, with its body as stored."""
        entry = self._by_place.get(commit_log_offset)
        return None if entry is None else entry.decode(self.broker_name, decompress=False)

    def find(self, topic: str, key: str) -> list[MessageExt]:
        """Return the messages of a topic with a key or unique key, their bodies as they are stored."""
        stored = [
            entry.decode(self.broker_name, decompress=False)
            for queue_id in self.queue_ids(topic)
            for entry in self.queue(topic, queue_id).entries()
        ]
        return [message for message in stored if key in (message.keys or "").split() or key == message.msg_id]

    def messages(self, topic: str, queue_id: int) -> list[MessageExt]:
        """Return the messages of a queue with decompressed bodies; without those that cannot be decoded."""
        found = []
        for entry in self.queue(topic, queue_id).entries():
            try:
                found.append(entry.decode(self.broker_name))
            except ProtocolError:
                continue
        return found
