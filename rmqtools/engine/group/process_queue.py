"""A pulled queue: answers fetched and not yet consumed, and the offset that may be committed.

Messages that arrive together are held, counted and dropped together: nothing here grows with the number of
messages held. They are consumed in any order (concurrently), but committing an offset means that all messages
before it are consumed. So the committable offset is that of the first message still held, or, if none is
held, the offset after the last one. Source of the rule: ProcessQueue (Java client).
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter

from rmqtools.clock import Clock
from rmqtools.engine.group.held_queue import HeldQueue
from rmqtools.engine.group.queue_locks import LOCK_MAX_LIVE_TIME
from rmqtools.errors import CorruptBodyError
from rmqtools.model.frozen import maker_of
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult
from rmqtools.policy.flow import Cached, CachedByMember

_PULL_MAX_IDLE_TIME = 120.0  # seconds; upstream ProcessQueue.PULL_MAX_IDLE_TIME
_cached = maker_of(Cached)
_offset_of = attrgetter("queue_offset")
_body_of = attrgetter("body")


class HeldAnswer:
    """Messages that arrived together, and which of them are not consumed yet.

    Attributes:
        messages: by offset; consumed ones are dropped once they are most of them.
        left: how many are not consumed.
        left_bytes: the size of their bodies.
    """

    __slots__ = ("_done", "_first", "left", "left_bytes", "messages")

    def __init__(self, messages: Sequence[MessageExt]) -> None:
        """``messages``: at least one."""
        self.messages = messages
        self.left = len(messages)
        self.left_bytes = _bytes_of(messages)
        self._done: set[int] = set()  # offsets of consumed messages, unless all are
        self._first = 0  # index of the first message that is not consumed

    def __iter__(self) -> Iterator[MessageExt]:
        """Yield the messages that are not consumed."""
        if not self._done:
            return iter(self.messages if self.left else ())
        rest = islice(self.messages, self._first, None)
        return (one for one in rest if one.queue_offset not in self._done)

    @property
    def first_offset(self) -> int:
        """The offset of the first message that is not consumed."""
        return self.messages[self._first].queue_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last message that is not consumed."""
        if not self._done:
            return self.messages[-1].queue_offset
        return next(one.queue_offset for one in reversed(self.messages) if one.queue_offset not in self._done)

    def finish(self, messages: Sequence[MessageExt]) -> tuple[int, int]:
        """Note that some of these messages are consumed; return how many were not before, and their bytes."""
        if not messages or not self.left:
            return 0, 0
        if self._are_all(messages):
            finished = self.left, self.left_bytes
            self.left = self.left_bytes = 0
            return finished
        fresh = [one for one in messages if one.queue_offset not in self._done]
        count, size = len(fresh), _bytes_of(fresh)
        self._done.update(map(_offset_of, fresh))
        self.left -= count
        self.left_bytes -= size
        self._drop_done()
        return count, size

    def _are_all(self, messages: Sequence[MessageExt]) -> bool:
        """Return whether nothing is consumed yet and these are all messages, in order: nearly always."""
        if self._done or len(messages) != self.left:
            return False
        ends = messages[0].queue_offset, messages[-1].queue_offset
        return ends == (self.messages[0].queue_offset, self.messages[-1].queue_offset)

    def _drop_done(self) -> None:
        while self.left and self.messages[self._first].queue_offset in self._done:
            self._first += 1
        if len(self._done) > self.left:  # so that a message that stays for long does not keep the others
            self.messages = [one for one in self.messages if one.queue_offset not in self._done]
            self._done.clear()
            self._first = 0


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
        self._answers: deque[HeldAnswer] = deque()  # the first and the last hold messages
        self._count = 0
        self._taken: dict[int, MessageExt] = {}
        self._cached_bytes = 0
        self._by_member = CachedByMember() if by_member is None else by_member
        self._end = -1  # highest offset ever held, plus one
        self._last_pull = self._last_lock = clock.monotonic()

    @property
    def count(self) -> int:
        """Messages held, including those being consumed."""
        return self._count

    @property
    def cached_bytes(self) -> int:
        """Bytes of the bodies of the messages held."""
        return self._cached_bytes

    @property
    def min_offset(self) -> int | None:
        """The first offset not yet consumed; None: nothing is held."""
        first = self._answers[0].first_offset if self._answers else None
        if not self._taken:  # always the case in concurrent consumption
            return first
        taken = next(iter(self._taken))
        return taken if first is None else min(taken, first)

    @property
    def max_offset(self) -> int | None:
        """The last offset held; None: no message is held."""
        last = self._answers[-1].last_offset if self._answers else None
        if not self._taken:
            return last
        taken = next(reversed(self._taken))
        return taken if last is None else max(taken, last)

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
            return _cached(count=self.count, size_bytes=self._cached_bytes, span=self.span)
        first = self.min_offset
        return _cached(
            count=self.count + coming.next_begin_offset - self.next_offset,
            size_bytes=self._cached_bytes + len(coming.body),
            span=coming.next_begin_offset - 1 - (self.next_offset if first is None else first),
        )

    @property
    def has_next(self) -> bool:
        """True if :meth:`take` has messages to hand out."""
        return bool(self._answers)

    @property
    def taken(self) -> Sequence[MessageExt]:
        """The messages that a listener has now (orderly consumption)."""
        return tuple(self._taken.values())

    @property
    def held(self) -> Sequence[MessageExt]:
        """The messages held, without those in :attr:`taken`, by offset."""
        return tuple(chain.from_iterable(self._answers))

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
        return self._last_lock + LOCK_MAX_LIVE_TIME

    def pulled(self) -> None:
        """Note that a request for messages was sent now."""
        self.note_waiting()
        self.last_pull_ms = self._clock.now_ms()

    def note_waiting(self) -> None:
        """Note that no request is sent on purpose; otherwise the queue would expire. Reports show no pull."""
        self._last_pull = self._clock.monotonic()

    def passed(self, offset: int, broker_end: int) -> None:
        """Note that all before an offset was consumed elsewhere, and where the broker's queue ends."""
        if offset != self.next_offset:
            self.last_consume_ms = self._clock.now_ms()
        self.next_offset, self.broker_end = offset, broker_end

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

    def put(self, messages: Sequence[MessageExt]) -> HeldAnswer | None:
        """Add fetched messages, in order of their offsets; None: all of them were held already."""
        if messages and messages[0].queue_offset < self._end:  # some were held before, and perhaps are now
            held = set(map(_offset_of, (*self.held, *self.taken)))
            messages = [one for one in messages if one.queue_offset not in held]
        if not messages:
            return None
        answer = HeldAnswer(messages)
        self._answers.append(answer)
        self._note(answer.left, answer.left_bytes)
        self._end = max(self._end, messages[-1].queue_offset + 1)
        self.wake()
        return answer

    def finish(self, answer: HeldAnswer, messages: Sequence[MessageExt]) -> int:
        """Remove consumed messages of an answer; return the committable offset."""
        count, size = answer.finish(messages)
        self._note(-count, -size)
        self._drop_finished()
        self.last_consume_ms = self._clock.now_ms()
        self.wake()
        return self.committable

    @property
    def committable(self) -> int:
        """All messages before this offset are consumed; -1: no message was ever held."""
        first = self.min_offset
        return self._end if first is None else first

    def first(self, count: int) -> list[MessageExt]:
        """Up to ``count`` messages from the front; they stay held."""
        return list(islice(chain.from_iterable(self._answers), count))

    def take(self, count: int) -> list[MessageExt]:
        """Hand out the next messages in order, until a later call commits them or puts them back.

        Messages taken before and not ended yet are left out.
        """
        taken: list[MessageExt] = []
        while self._answers and len(taken) < count:
            answer = self._answers[0]
            part = list(islice(answer, count - len(taken)))
            answer.finish(part)
            taken += part
            self._drop_finished()
        self._taken.update((one.queue_offset, one) for one in taken)
        self.last_consume_ms = self._clock.now_ms()
        return taken

    def consume(self, count: int) -> None:
        """Remove the first messages: they are consumed without having been taken."""
        while count > 0 and self._answers:
            answer = self._answers[0]
            part = list(islice(answer, count))
            count -= len(part)
            self.finish(answer, part)

    def commit(self) -> int:
        """Note that the taken messages are consumed; return the committable offset."""
        self._note(-len(self._taken), -_bytes_of(self._taken.values()))
        self._taken.clear()
        self.wake()
        return self.committable

    def commit_some(self, messages: Sequence[MessageExt]) -> None:
        """Note that some of the taken messages are consumed."""
        for message in messages:
            del self._taken[message.queue_offset]
        self._note(-len(messages), -_bytes_of(messages))
        self.wake()

    def rollback(self) -> None:
        """Make all taken messages available again."""
        self.put_back(tuple(self._taken.values()))

    def put_back(self, messages: Sequence[MessageExt]) -> None:
        """Make these taken messages available again, in this order, before all others; the rest stays taken.

        A message is identified by its offset, since its count of tries may have changed.
        """
        again = [one for one in messages if self._taken.pop(one.queue_offset, None) is not None]
        if again:
            self._answers.appendleft(HeldAnswer(again))
        self.wake()

    def leave_member(self) -> None:
        """Let the member no longer count this queue: its messages are given up."""
        self._by_member.add(-self._count, -self._cached_bytes)
        self._by_member = CachedByMember()

    def _note(self, count: int, size_bytes: int) -> None:
        """Count messages that have come; negative: that are gone."""
        self._count += count
        self._cached_bytes += size_bytes
        self._by_member.add(count, size_bytes)

    def _drop_finished(self) -> None:
        answers = self._answers
        while answers and not answers[0].left:
            answers.popleft()
        while answers and not answers[-1].left:
            answers.pop()


def _bytes_of(messages: Collection[MessageExt]) -> int:
    """Return the size of these messages' bodies together; of a corrupt one, its size as stored."""
    try:
        return sum(map(len, map(_body_of, messages)))
    except CorruptBodyError:
        return sum(len(one.body if one.body_error is None else one.body_error.raw) for one in messages)
