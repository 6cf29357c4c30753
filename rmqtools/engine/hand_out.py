"""Which fetched messages come next, and how far their queues are consumed by that.

A message stays in its ProcessQueue until it is handed out, so a seek, or a queue that goes to another member,
takes away what nobody has got. Iteration borrows a batch: of that, too, only what was really handed out is
taken out of the queue. Used from the event loop, but for :meth:`HandOut.next`.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable

from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.model.message import MessageExt


class HandOut:
    """The messages of one pull consumer on their way to its user. Queues take turns."""

    def __init__(self) -> None:
        self._ready: dict[ProcessQueue, None] = {}  # in the order of their turns
        self._lent: deque[tuple[ProcessQueue, MessageExt]] = deque()
        self._given: list[tuple[ProcessQueue, MessageExt]] = []  # of what was lent, still in its queue
        self._done: dict[ProcessQueue, int] = {}
        self._arrived = asyncio.Event()
        self._lock = threading.Lock()  # iteration runs on the user's thread

    def arrived(self, held: ProcessQueue) -> None:
        """There are messages of a queue."""
        self._ready.setdefault(held)
        self._arrived.set()

    def wake(self) -> None:
        """Let :meth:`wait` return."""
        self._arrived.set()

    async def wait(self, timeout: float) -> None:
        """Wait until there may be messages, at most ``timeout`` seconds."""
        self._arrived.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._arrived.wait()
        except TimeoutError:
            return

    def begin(self, table: Iterable[ProcessQueue]) -> None:
        """A poll begins: its caller is through with all that was handed out before."""
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
        """Make up to ``count`` messages ready for :meth:`next`; whether there are any."""
        chosen = self._choose(count)
        with self._lock:
            self._lent.extend((held, message) for held, messages in chosen for message in messages)
        return bool(chosen)

    def next(self) -> MessageExt | None:
        """Hand out one message that was lent; None: there is none left. Safe on any thread."""
        with self._lock:
            while self._lent:
                held, message = self._lent.popleft()
                if not held.is_dropped and held.contains(message):
                    self._given.append((held, message))
                    return message
        return None

    def settle(self) -> None:
        """Take out of the queues what iteration has handed out."""
        with self._lock:
            given, self._given = self._given, []
        for number, (held, message) in enumerate(given, start=1):
            if number == len(given):  # iteration has not come back for another: it may not be through
                self._done.update({each: _position(each) for each, _ in given})
            held.remove([message])

    def recall(self) -> None:
        """Settle, and take back what is lent."""
        with self._lock:
            self._lent.clear()
        self.settle()

    def position(self, held: ProcessQueue) -> int:
        """The offset of the message of a queue that comes next, known or not."""
        self.settle()
        return _position(held)

    def handed_out(self, held: ProcessQueue) -> int | None:
        """All before this offset was handed out; None: nobody has asked since the queue is held."""
        self.settle()
        return _position(held) if held in self._done else None

    def consumed(self, held: ProcessQueue) -> int | None:
        """All before this offset was handed out before the last poll; None as for :meth:`handed_out`."""
        self.settle()
        return self._done.get(held)

    def replace(self, held: ProcessQueue, fresh: ProcessQueue) -> None:
        """A queue goes on at another offset, as its user said: that is where it is consumed to."""
        self.recall()
        self.forget(held)
        self._done[fresh] = fresh.next_offset

    def forget(self, held: ProcessQueue) -> None:
        """A queue is held no more."""
        self._ready.pop(held, None)
        self._done.pop(held, None)

    def _choose(self, count: int) -> list[tuple[ProcessQueue, list[MessageExt]]]:
        """Up to ``count`` messages, in the order of each queue; they stay where they are."""
        chosen: list[tuple[ProcessQueue, list[MessageExt]]] = []
        for held in list(self._ready):
            if count <= 0:
                break
            if not held.is_paused or held.is_dropped:
                del self._ready[held]
            if held.is_paused or held.is_dropped or not (messages := held.first(count)):
                continue
            self._ready[held] = None  # behind the others
            count -= len(messages)
            chosen.append((held, messages))
        return chosen


def _position(held: ProcessQueue) -> int:
    first = held.min_offset
    return held.next_offset if first is None else first
