"""Chooses the messages that a pull consumer hands out next, and tracks how far queues are consumed.

A message stays in its ProcessQueue until it is handed out. A seek or the release of a queue discards messages
not yet delivered. Iterations and polls of the blocking face borrow messages ahead; only those really handed
out leave the queue. Used from the event loop, except :meth:`HandOut.next`, :meth:`HandOut.next_poll` and
:attr:`HandOut.should_remove`.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable

from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.message import MessageExt

_MOST_KEPT = 32  # messages handed out on another thread until the loop should remove them from their queues


class HandOut:
    """The fetched messages of one pull consumer, handed out queue by queue in rotation."""

    def __init__(self) -> None:
        self._ready: dict[ProcessQueue, None] = {}  # in rotation order
        self._made_ready: deque[tuple[ProcessQueue, MessageExt]] = deque()
        self._given: list[tuple[ProcessQueue, MessageExt]] = []  # handed out, and still in their queues
        self._last = 1  # how many of those the last call handed out
        self._is_removing = False
        self._done: dict[ProcessQueue, int] = {}
        self._arrived = asyncio.Event()
        self._lock = threading.Lock()  # next() runs on the user's thread

    def arrived(self, held: ProcessQueue) -> None:
        """Note that a queue has messages."""
        self._ready.setdefault(held)
        self._arrived.set()

    def wake(self) -> None:
        """Make :meth:`wait` return."""
        self._arrived.set()

    async def wait(self, timeout: float) -> None:
        """Wait until messages may have arrived, at most ``timeout`` seconds."""
        self._arrived.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._arrived.wait()
        except TimeoutError:
            return

    def begin(self, table: Iterable[ProcessQueue]) -> None:
        """Begin a poll: all messages handed out before count as consumed."""
        self.take_back()
        self._done.update({held: _position(held) for held in table if not held.is_dropped})

    def take(self, count: int) -> list[MessageExt]:
        """Hand out up to ``count`` messages."""
        taken: list[MessageExt] = []
        for held, messages in self._choose(count):
            held.remove(messages)
            taken += messages
        return taken

    def make_ready(self, count: int, *, ahead: int = 0) -> bool:
        """Make messages ready for :meth:`next` and :meth:`next_poll`; return whether there are any.

        Up to ``count``, or up to ``ahead`` in portions of ``count``, for which the queues take turns.
        """
        if ahead <= count:
            portions = self._choose(count)
        else:
            queues = list(self._ready)
            each = max(count, ahead // max(len(queues), 1))
            found = [(held, self._first(held, each)) for held in queues]
            portions = [
                (held, messages[start : start + count])
                for start in range(0, each, count)
                for held, messages in found
            ]
        with self._lock:
            before = len(self._made_ready)
            self._made_ready.extend((held, message) for held, messages in portions for message in messages)
            return len(self._made_ready) > before

    def next(self) -> MessageExt | None:
        """Hand out one borrowed message; None: none left. Safe on any thread."""
        with self._lock:
            found = self._borrowed(1)
            return found[0][1] if found else None

    def next_poll(self, count: int) -> list[MessageExt]:
        """Hand out ``count`` borrowed messages at once; none if fewer are left. Safe on any thread."""
        with self._lock:
            if len(self._made_ready) < count:
                return []
            return [message for _, message in self._borrowed(count)]

    def _borrowed(self, count: int) -> list[tuple[ProcessQueue, MessageExt]]:
        found: list[tuple[ProcessQueue, MessageExt]] = []
        while self._made_ready and len(found) < count:
            held, message = pair = self._made_ready.popleft()
            if not held.is_dropped and held.contains(message):
                found.append(pair)
        if found:
            self._given += found
            self._last = len(found)
        return found

    @property
    def should_remove(self) -> bool:
        """True if to call :meth:`remove_handed_out` now. True once; then False until that call is over."""
        if self._is_removing or not self._given or (self._made_ready and len(self._given) < _MOST_KEPT):
            return False
        self._is_removing = True
        return True

    def remove_handed_out(self) -> None:
        """Remove borrowed messages that were handed out from their queues."""
        with self._lock:
            given, self._given = self._given, []
            last, self._is_removing = self._last, False
        if not given:
            return
        self._note_done()  # what was removed before was handed out before
        before = len(given) - last
        for held, message in given[:before]:
            held.remove([message])
        if before:
            self._note_done()
        for held, message in given[before:]:  # the application may still be using these
            held.remove([message])

    def _note_done(self) -> None:
        self._done.update({held: _position(held) for held in self._done})

    def take_back(self) -> None:
        """Remove the messages handed out, and take borrowed ones back."""
        with self._lock:
            self._made_ready.clear()
        self.remove_handed_out()

    def position(self, held: ProcessQueue) -> int:
        """Return the offset of a queue's next message to hand out, fetched or not."""
        self.remove_handed_out()
        return _position(held)

    def handed_out(self, held: ProcessQueue) -> int | None:
        """All messages before this offset were handed out; None: no poll since the queue is held."""
        self.remove_handed_out()
        return _position(held) if held in self._done else None

    def consumed(self, held: ProcessQueue) -> int | None:
        """All before this offset was handed out before the last poll; None: see :meth:`handed_out`."""
        self.remove_handed_out()
        return self._done.get(held)

    def replace(self, held: ProcessQueue, fresh: ProcessQueue) -> None:
        """Continue a queue at another offset on the user's request; it counts as consumed up to there."""
        self.take_back()
        self.forget(held)
        self._done[fresh] = fresh.next_offset

    def forget(self, held: ProcessQueue) -> None:
        """Forget a queue that is no longer held."""
        self._ready.pop(held, None)
        self._done.pop(held, None)

    def _choose(self, count: int) -> list[tuple[ProcessQueue, list[MessageExt]]]:
        """Choose up to ``count`` messages, in order within each queue; they stay in their queues."""
        chosen: list[tuple[ProcessQueue, list[MessageExt]]] = []
        for held in list(self._ready):
            if count <= 0:
                break
            if messages := self._first(held, count):
                count -= len(messages)
                chosen.append((held, messages))
        return chosen

    def _first(self, held: ProcessQueue, count: int) -> list[MessageExt]:
        """Return the first messages of a ready queue, which goes behind the others."""
        if not held.is_paused or held.is_dropped:
            del self._ready[held]
        if held.is_paused or held.is_dropped or not (messages := held.first(count)):
            return []
        self._ready[held] = None  # behind the other queues
        self._done.setdefault(held, _position(held))  # a queue that was not held yet when the poll began
        return messages


def _position(held: ProcessQueue) -> int:
    first = held.min_offset
    return held.next_offset if first is None else first
