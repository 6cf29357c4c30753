"""A queue that a consumer holds now: the messages fetched and not yet consumed, and what may be committed.

Messages are consumed in any order (concurrently), but a queue's offset says "everything before is done": it
is the offset of the first message still here, or the next one to be fetched where none is. Source of the
rule: ProcessQueue (Java client).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice

from rmqtools.clock import Clock
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult
from rmqtools.policy.flow import Cached

_PULL_MAX_IDLE_TIME = 120.0  # seconds; upstream ProcessQueue.PULL_MAX_IDLE_TIME
_LOCK_MAX_LIVE_TIME = (
    30.0  # seconds that a lock of the broker is believed in; upstream REBALANCE_LOCK_MAX_LIVE_TIME
)


class ProcessQueue:
    """What is held of one queue. Used from the event loop only.

    Attributes:
        queue: whose messages.
        next_offset: the next queue offset to fetch.
        is_dropped: no longer ours; nothing more is fetched or handed out, what comes back is not committed.
        is_locked: the broker has given it to this member alone (orderly consumption).
        consuming: held while a listener has messages of the queue (orderly consumption).
    """

    def __init__(self, queue: MessageQueue, clock: Clock, next_offset: int = 0) -> None:
        self.queue = queue
        self.next_offset = next_offset
        self.is_dropped = False
        self.is_locked = False
        self.is_paused = False
        self.consuming = asyncio.Lock()
        self.last_consume_ms = 0
        self.last_pull_ms = clock.now_ms()
        self.last_lock_ms = 0
        self._clock = clock
        self._messages: OrderedDict[int, MessageExt] = OrderedDict()
        self._taken: OrderedDict[int, MessageExt] = OrderedDict()
        self._cached_bytes = 0
        self._end = -1  # one more than the highest offset that was ever here
        self._last_pull = self._last_lock = clock.monotonic()
        self._changed = asyncio.Event()

    @property
    def count(self) -> int:
        """Messages held, those being consumed included."""
        return len(self._messages) + len(self._taken)

    @property
    def cached_bytes(self) -> int:
        """The same in bytes of bodies."""
        return self._cached_bytes

    @property
    def min_offset(self) -> int | None:
        """The first offset not yet consumed; None: nothing is held."""
        if not self._taken:  # always, but in order
            return next(iter(self._messages), None)
        return min(next(iter(held)) for held in (self._messages, self._taken) if held)

    @property
    def max_offset(self) -> int | None:
        """The last offset held; None: nothing is."""
        if not self._taken:
            return next(reversed(self._messages), None)
        return max(next(reversed(held)) for held in (self._messages, self._taken) if held)

    @property
    def span(self) -> int:
        """Offsets between the first and the last message held."""
        first, last = self.min_offset, self.max_offset
        return last - first if first is not None and last is not None else 0

    def cached(self, coming: PullResult | None = None) -> Cached:
        """What is held, for flow control; together with an answer that is not decoded yet.

        Of that answer nothing is known but its ends and its bytes: it counts as one message for each offset.
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
        """Whether :meth:`take` has something to hand out."""
        return bool(self._messages)

    @property
    def taken(self) -> Sequence[MessageExt]:
        """The messages a listener has now (orderly consumption)."""
        return tuple(self._taken.values())

    @property
    def held(self) -> Sequence[MessageExt]:
        """The messages held, but for those of :attr:`taken`, by offset."""
        return tuple(self._messages.values())

    @property
    def is_pull_expired(self) -> bool:
        """Whether nothing was asked for so long that the fetching must have died."""
        return self._clock.monotonic() - self._last_pull > _PULL_MAX_IDLE_TIME

    @property
    def is_lock_expired(self) -> bool:
        """Whether the lock is older than is safe: the broker may have given the queue to somebody else."""
        return self._clock.monotonic() - self._last_lock > _LOCK_MAX_LIVE_TIME

    def pulled(self) -> None:
        """Note that messages were asked for now."""
        self._last_pull = self._clock.monotonic()
        self.last_pull_ms = self._clock.now_ms()

    def lock(self, granted: bool) -> None:
        """Note what the broker said to a lock request."""
        self.is_locked = granted
        if granted:
            self._last_lock = self._clock.monotonic()
            self.last_lock_ms = self._clock.now_ms()
        self.wake()

    def take_over(self, other: "ProcessQueue") -> None:
        """Stand in for another of the same queue: its lock, and the listener that may still be running."""
        self.consuming, self.is_paused = other.consuming, other.is_paused
        self.is_locked, self.last_lock_ms = other.is_locked, other.last_lock_ms
        self.is_paused = other.is_paused
        self._last_lock = other._last_lock

    def drop(self) -> None:
        """Give the queue up. Whoever waits for it wakes."""
        self.is_dropped = True
        self.wake()

    def put(self, messages: Iterable[MessageExt]) -> None:
        """Take messages that were fetched, in order of their offsets; those held already are passed over."""
        held, taken = self._messages, self._taken
        offset = self._end - 1
        for message in messages:
            offset = message.queue_offset
            if offset not in held and offset not in taken:
                held[offset] = message
                self._cached_bytes += len(message.body)
        self._end = max(self._end, offset + 1)
        self.wake()

    def remove(self, messages: Iterable[MessageExt]) -> int:
        """Messages are consumed; what may be committed now, -1 if nothing ever was here."""
        pop = self._messages.pop
        for message in messages:
            if pop(message.queue_offset, None) is not None:
                self._cached_bytes -= len(message.body)
        self.last_consume_ms = self._clock.now_ms()
        self.wake()
        return self.committable

    @property
    def committable(self) -> int:
        """Everything before this offset is consumed; -1: nothing ever was here."""
        first = self.min_offset
        return self._end if first is None else first

    def contains(self, message: MessageExt) -> bool:
        """Whether a message is still held."""
        return message.queue_offset in self._messages

    def first(self, count: int) -> list[MessageExt]:
        """Up to ``count`` messages from the front, which stay held."""
        return list(islice(self._messages.values(), count))

    def take(self, count: int) -> list[MessageExt]:
        """Hand out the next messages in order, to be ended by :meth:`commit` or :meth:`rollback`.

        Those taken before and not yet ended are not among them.
        """
        fresh: list[MessageExt] = []
        while self._messages and len(fresh) < count:
            offset, message = self._messages.popitem(last=False)
            self._taken[offset] = message
            fresh.append(message)
        self.last_consume_ms = self._clock.now_ms()
        return fresh

    def commit(self) -> int:
        """What was taken is consumed; what may be committed now."""
        self._cached_bytes -= sum(len(message.body) for message in self._taken.values())
        self._taken.clear()
        self.wake()
        return self.committable

    def rollback(self, messages: Iterable[MessageExt] = ()) -> None:
        """What was taken comes again.

        ``messages`` replace those of the same offset (their count of tries).
        """
        self._taken.update({message.queue_offset: message for message in messages})
        for offset, message in reversed(self._taken.items()):
            self._messages[offset] = message
            self._messages.move_to_end(offset, last=False)
        self._taken.clear()
        self.wake()

    def clear(self) -> None:
        """Forget all messages, as after a seek; nothing of them is committed."""
        self._messages.clear()
        self._taken.clear()
        self._cached_bytes = 0
        self._end = -1
        self.wake()

    def wake(self) -> None:
        """Let :meth:`changed` return."""
        self._changed.set()

    async def changed(self, timeout: float | None = None) -> None:
        """Wait until something has happened since the last look, at most ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()
