"""Chooses the messages that a pull consumer hands out next, and tracks how far queues are consumed.

A message stays in its ProcessQueue until it is handed out. A seek or the release of a queue discards messages
not yet delivered. Iteration borrows a batch; only messages really handed out leave the queue. Used from the
event loop, except :meth:`HandOut.next`.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable

from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.message import MessageExt


class HandOut:
    """The fetched messages of one pull consumer, handed out queue by queue in rotation."""

    def __init__(self) -> None:
        self._ready: dict[ProcessQueue, None] = {}  # in rotation order
        self._lent: deque[tuple[ProcessQueue, MessageExt]] = deque()
        self._given: list[tuple[ProcessQueue, MessageExt]] = []  # handed out by next(), still in their queues
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
        self.recall()
        self._done.update({held: _position(held) for held in table if not held.is_dropped})

    def take(self, count: int) -> list[MessageExt]:
        """Hand out up to ``count`` messages."""
        taken: list[MessageExt] = []
        for held, messages in self._choose(count):
            held.remove(messages)
            taken += messages
        return taken

    def lend(self, count: int) -> bool:
        """Make up to ``count`` messages ready for :meth:`next`; return whether there are any."""
        chosen = self._choose(count)
        with self._lock:
            self._lent.extend((held, message) for held, messages in chosen for message in messages)
        return bool(chosen)

    def next(self) -> MessageExt | None:
        """Hand out one borrowed message; None: none left. Safe on any thread."""
        with self._lock:
            while self._lent:
                held, message = self._lent.popleft()
                if not held.is_dropped and held.contains(message):
                    self._given.append((held, message))
                    return message
        return None

    def settle(self) -> None:
        """Remove messages handed out by iteration from their queues."""
        with self._lock:
            given, self._given = self._given, []
        for number, (held, message) in enumerate(given, start=1):
            if number == len(given):  # not the last one: the iteration may still be using it
                self._done.update({each: _position(each) for each, _ in given})
            held.remove([message])

    def recall(self) -> None:
        """Settle, and take borrowed messages back."""
        with self._lock:
            self._lent.clear()
        self.settle()

    def position(self, held: ProcessQueue) -> int:
        """The offset of a queue's next message to hand out, fetched or not."""
        self.settle()
        return _position(held)

    def handed_out(self, held: ProcessQueue) -> int | None:
        """All messages before this offset were handed out; None: no poll since the queue is held."""
        self.settle()
        return _position(held) if held in self._done else None

    def consumed(self, held: ProcessQueue) -> int | None:
        """All before this offset was handed out before the last poll; None: see :meth:`handed_out`."""
        self.settle()
        return self._done.get(held)

    def replace(self, held: ProcessQueue, fresh: ProcessQueue) -> None:
        """Continue a queue at another offset on the user's request; it counts as consumed up to there."""
        self.recall()
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
            if not held.is_paused or held.is_dropped:
                del self._ready[held]
            if held.is_paused or held.is_dropped or not (messages := held.first(count)):
                continue
            self._ready[held] = None  # behind the other queues
            self._done.setdefault(held, _position(held))  # a queue that was not held yet when the poll began
            count -= len(messages)
            chosen.append((held, messages))
        return chosen


def _position(held: ProcessQueue) -> int:
    first = held.min_offset
    return held.next_offset if first is None else first
