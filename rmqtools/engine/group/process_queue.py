"""A pulled queue: messages fetched and not yet consumed, and the offset that may be committed.

Messages are consumed in any order (concurrently), but committing an offset means that all messages before it
are consumed. So the committable offset is that of the first message still held, or, if none is held, the next
offset to fetch. Source of the rule: ProcessQueue (Java client).
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from itertools import islice, repeat
from operator import attrgetter

from rmqtools.clock import Clock
from rmqtools.engine.group.held_queue import HeldQueue
from rmqtools.errors import CorruptBodyError
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult
from rmqtools.policy.flow import Cached, CachedByMember

_PULL_MAX_IDLE_TIME = 120.0  # seconds; upstream ProcessQueue.PULL_MAX_IDLE_TIME
_LOCK_MAX_LIVE_TIME = (
    30.0  # seconds that a lock of the broker is believed in; upstream REBALANCE_LOCK_MAX_LIVE_TIME
)
_offset_of = attrgetter("queue_offset")
_body_of = attrgetter("body")


class ProcessQueue(HeldQueue):
    """State of one pulled queue.

    Attributes:
        next_offset: the next queue offset to fetch.
        broker_end: the offset after the queue's last message, as of the last answer; -1: unknown.
        is_locked: the broker has locked the queue for this member (orderly consumption).
        consuming: locked while a listener has messages of the queue (orderly consumption).
    """

    def __init__(
        self,
        queue: MessageQueue,
        clock: Clock,
        next_offset: int = 0,
        by_member: CachedByMember | None = None,
    ) -> None:
        """``by_member``: the counts of the member, to which this queue adds its own."""
        super().__init__(queue)
        self.next_offset = next_offset
        self.broker_end = -1
        self.is_locked = False
        self.is_paused = False
        self.consuming = asyncio.Lock()
        self.last_consume_ms = self.last_pull_ms = clock.now_ms()
        self.last_lock_ms = 0
        self._clock = clock
        self._messages: dict[int, MessageExt] = {}  # by offset, ascending
        self._gone = 0  # messages removed since that dictionary was made: looking for its first passes them
        self._taken: dict[int, MessageExt] = {}
        self._cached_bytes = 0
        self._by_member = CachedByMember() if by_member is None else by_member
        self._end = -1  # highest offset ever held, plus one
        self._last_pull = self._last_lock = clock.monotonic()

    @property
    def count(self) -> int:
        """Messages held, including those being consumed."""
        return len(self._messages) + len(self._taken)

    @property
    def cached_bytes(self) -> int:
        """Bytes of the bodies of the messages held."""
        return self._cached_bytes

    @property
    def min_offset(self) -> int | None:
        """The first offset not yet consumed; None: nothing is held."""
        if not self._taken:  # always the case in concurrent consumption
            return next(iter(self._messages), None)
        return min(next(iter(held)) for held in (self._messages, self._taken) if held)

    @property
    def max_offset(self) -> int | None:
        """The last offset held; None: no message is held."""
        if not self._taken:
            return next(reversed(self._messages), None)
        return max(next(reversed(held)) for held in (self._messages, self._taken) if held)

    @property
    def end(self) -> int:
        """The offset after the last message that this queue has ever held; -1: it has held none."""
        return self._end

    @property
    def lag(self) -> int:
        """Messages that the broker has and that are not consumed yet, as of its last answer."""
        first = self.min_offset
        return max(0, self.broker_end - (self.next_offset if first is None else first))

    @property
    def span(self) -> int:
        """Offsets between the first and the last message held."""
        first, last = self.min_offset, self.max_offset
        return last - first if first is not None and last is not None else 0

    def cached(self, coming: PullResult | None = None) -> Cached:
        """Size of the messages held, for flow control, plus ``coming``, an answer that is not decoded yet.

        Only the offsets and bytes of that answer are known, so each of its offsets counts as one message.
        """
        if coming is None:
            return Cached(count=self.count, size_bytes=self._cached_bytes, span=self.span)
        first = self.min_offset
        return Cached(
            count=self.count + coming.next_begin_offset - self.next_offset,
            size_bytes=self._cached_bytes + len(coming.body),
            span=coming.next_begin_offset - 1 - (self.next_offset if first is None else first),
        )

    @property
    def has_next(self) -> bool:
        """True if :meth:`take` has messages to hand out."""
        return bool(self._messages)

    @property
    def taken(self) -> Sequence[MessageExt]:
        """The messages that a listener has now (orderly consumption)."""
        return tuple(self._taken.values())

    @property
    def held(self) -> Sequence[MessageExt]:
        """The messages held, without those in :attr:`taken`, by offset."""
        return tuple(self._messages.values())

    @property
    def is_pull_expired(self) -> bool:
        """True if the last request is so long ago that the fetching task must have died."""
        return self._clock.monotonic() - self._last_pull > _PULL_MAX_IDLE_TIME

    @property
    def is_lock_expired(self) -> bool:
        """True if the lock is too old to trust: the broker may have given the queue to another member."""
        return self._clock.monotonic() > self.lock_ends

    @property
    def lock_ends(self) -> float:
        """The monotonic time until which a lock is trusted."""
        return self._last_lock + _LOCK_MAX_LIVE_TIME

    def pulled(self) -> None:
        """Note that a request for messages was sent now."""
        self.note_waiting()
        self.last_pull_ms = self._clock.now_ms()

    def note_waiting(self) -> None:
        """Note that no request is sent on purpose; otherwise the queue would expire. Reports show no pull."""
        self._last_pull = self._clock.monotonic()

    def lock(self, granted: bool) -> None:
        """Note the broker's answer to a lock request."""
        self.is_locked = granted
        if granted:
            self._last_lock = self._clock.monotonic()
            self.last_lock_ms = self._clock.now_ms()
        self.wake()

    def take_over(self, other: "ProcessQueue") -> None:
        """Replace another state of the same queue: take its lock and the listener that may still run."""
        self.consuming = other.consuming
        self.is_locked, self.last_lock_ms = other.is_locked, other.last_lock_ms
        self.is_paused = other.is_paused
        self._last_lock = other._last_lock

    def put(self, messages: Iterable[MessageExt]) -> None:
        """Add fetched messages, in order of their offsets; skip those held already."""
        fresh = {message.queue_offset: message for message in messages}
        if not fresh:
            return
        if next(iter(fresh)) < self._end:  # some were held before, and perhaps are now
            for offset in [one for one in fresh if one in self._messages or one in self._taken]:
                del fresh[offset]
        self._messages.update(fresh)
        self._count(len(fresh), _bytes_of(fresh.values()))
        self._end = max(self._end, next(reversed(fresh), -1) + 1)
        self.wake()

    def remove(self, messages: Iterable[MessageExt]) -> int:
        """Remove consumed messages; return the committable offset, -1 if no message was ever held."""
        popped = map(self._messages.pop, map(_offset_of, messages), repeat(None))
        removed = [message for message in popped if message is not None]
        self._count(-len(removed), -_bytes_of(removed))
        self._note_gone(len(removed))
        self.last_consume_ms = self._clock.now_ms()
        self.wake()
        return self.committable

    @property
    def committable(self) -> int:
        """All messages before this offset are consumed; -1: no message was ever held."""
        first = self.min_offset
        return self._end if first is None else first

    def contains(self, message: MessageExt) -> bool:
        """Return whether a message is still held."""
        return message.queue_offset in self._messages

    def first(self, count: int) -> list[MessageExt]:
        """Up to ``count`` messages from the front; they stay held."""
        return list(islice(self._messages.values(), count))

    def take(self, count: int) -> list[MessageExt]:
        """Hand out the next messages in order, until :meth:`commit` or :meth:`rollback` ends them.

        Messages taken before and not ended yet are left out.
        """
        fresh = dict(islice(self._messages.items(), count))
        for offset in fresh:
            del self._messages[offset]
        self._note_gone(len(fresh))
        self._taken.update(fresh)
        self.last_consume_ms = self._clock.now_ms()
        return [*fresh.values()]

    def commit(self) -> int:
        """Note that the taken messages are consumed; return the committable offset."""
        self._count(-len(self._taken), -_bytes_of(self._taken.values()))
        self._taken.clear()
        self.wake()
        return self.committable

    def rollback(self) -> None:
        """Make all taken messages available again."""
        self.put_back(tuple(self._taken.values()))

    def put_back(self, messages: Sequence[MessageExt]) -> None:
        """Make these taken messages available again, in this order, before all others; the rest stays taken.

        A message is identified by its offset, since its count of tries may have changed.
        """
        again = {
            message.queue_offset: message
            for message in messages
            if self._taken.pop(message.queue_offset, None) is not None
        }
        self._messages = {**again, **self._messages}
        self.wake()

    def leave_member(self) -> None:
        """Let the member no longer count this queue: its messages are given up."""
        self._by_member.add(-self.count, -self._cached_bytes)
        self._by_member = CachedByMember()

    def _count(self, count: int, size_bytes: int) -> None:
        self._cached_bytes += size_bytes
        self._by_member.add(count, size_bytes)

    def _note_gone(self, count: int) -> None:
        """Note that messages have left the table, and make it anew before they are most of it."""
        self._gone += count
        if self._gone > len(self._messages):
            self._messages, self._gone = dict(self._messages), 0


def _bytes_of(messages: Collection[MessageExt]) -> int:
    """Return the size of these messages' bodies together; of a corrupt one, its size as stored."""
    try:
        return sum(map(len, map(_body_of, messages)))
    except CorruptBodyError:
        return sum(len(one.body if one.body_error is None else one.body_error.raw) for one in messages)
