"""Chooses the messages that a pull consumer hands out next, and tracks how far queues are consumed.

A message stays in its ProcessQueue until the application has it. Calling threads of the blocking face take
portions from :meth:`HandOut.ready_for` by themselves (``sync.loop.Bridge.take``); a portion that is gone
there was taken, and its messages leave their queues. So an interrupted call loses nothing. Each size has
portions of its own: a thread that reads one by one must not take a larger portion, made for another thread.
All other methods run on the event loop.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.message import MessageExt

_ROW = 32  # messages of one queue in a row, if they are handed out one by one
_LOOK_AFTER = 0.01  # seconds until a portion that was made ready is expected to be taken


@dataclass
class _Made:
    """Messages that were made ready, in order, cut into portions of ``count``; the last may have fewer.

    Attributes:
        owners: the queue of each message.
        noted: how many of them have left their queues.
    """

    owners: list[ProcessQueue] = field(default_factory=list)
    messages: list[MessageExt] = field(default_factory=list)
    count: int = 1
    noted: int = 0

    def add(self, held: ProcessQueue, messages: list[MessageExt]) -> None:
        """Add messages of a queue."""
        self.owners += [held] * len(messages)
        self.messages += messages

    def without(self, left: int) -> int:
        """Return how many messages the portions before the last ``left`` have."""
        portions = -(-len(self.messages) // self.count)
        return min((portions - left) * self.count, len(self.messages))


class HandOut:
    """The fetched messages of one pull consumer, handed out queue by queue in rotation.

    Attributes:
        size: messages that each portion was made for, of those that are ready.
    """

    def __init__(self, plain: Callable[[MessageExt], MessageExt] = lambda message: message) -> None:
        """``plain``: makes of a message as stored the one that the application gets."""
        self.size = 0
        self._by_size: dict[int, dict[int, list[MessageExt]]] = {}  # kept: a slow thread may look at any
        self._plain = plain
        self._next_number = 0
        self._made = _Made()
        self._last: dict[ProcessQueue, int] = {}  # first offsets, by queue, of what was handed out last
        self._filled: OrderedDict[ProcessQueue, None] = OrderedDict()  # queues with messages, in rotation
        self._new: set[ProcessQueue] = set()  # held since the last poll
        self._polled: set[ProcessQueue] = set()  # all other queues held
        self._arrived = asyncio.Event()
        self._look: asyncio.TimerHandle | None = None

    @property
    def ready(self) -> dict[int, list[MessageExt]]:
        """The portions that are ready now."""
        return self.ready_for(self.size)

    def ready_for(self, count: int) -> dict[int, list[MessageExt]]:
        """Return portions of up to ``count`` messages, by number; a thread removes the one it takes.

        Always the same object, empty while portions of another size are ready. Safe on any thread.
        """
        return self._by_size.setdefault(count, {})

    def held(self, held: ProcessQueue) -> None:
        """Note a queue that is newly held."""
        if held not in self._polled:
            self._new.add(held)

    def arrived(self, held: ProcessQueue) -> None:
        """Note that a queue has messages."""
        self._filled.setdefault(held)
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

    def begin(self) -> None:
        """Begin a poll: all messages handed out before count as consumed."""
        self.take_back()
        self._last.clear()
        self._polled |= self._new
        self._new.clear()

    def take(self, count: int) -> list[MessageExt]:
        """Hand out up to ``count`` messages."""
        made = self._choose(count)
        self._note(made, len(made.messages))
        return list(map(self._plain, made.messages))

    def make_ready(self, count: int, *, ahead: int = 0) -> bool:
        """Make portions of up to ``count`` messages ready, if none is; return whether there is one.

        Those of another size are taken back. ``ahead``: messages of all portions together. Further portions
        are full, and queues take turns.
        """
        if self.ready_for(count):
            return True
        self.take_back()
        self._made = made = self._choose(count) if ahead <= count else self._choose_ahead(count, ahead)
        plain = list(map(self._plain, made.messages))
        portions = [plain[start : start + count] for start in range(0, len(plain), count)]
        self.size = count
        self.ready.update(enumerate(portions, self._next_number))
        self._next_number += len(portions)  # never used again: a slow thread may still hold an old number
        if portions and self._look is None:
            self._look = asyncio.get_running_loop().call_later(_LOOK_AFTER, self._look_now)
        return bool(portions)

    def note_taken(self) -> None:
        """Note which portions are gone, and remove their messages from their queues."""
        self._note(self._made, self._made.without(len(self.ready)))

    def take_back(self) -> None:
        """Make no portion ready any longer; those that were taken before are noted."""
        left, ready = 0, self.ready
        while ready:
            try:
                ready.popitem()  # the last: threads take the first
            except KeyError:  # a calling thread was faster
                break
            left += 1
        self._note(self._made, self._made.without(left))
        self._made = _Made()

    def position(self, held: ProcessQueue) -> int:
        """Return the offset of a queue's next message to hand out, fetched or not."""
        self.note_taken()
        return _position(held)

    def handed_out(self, held: ProcessQueue) -> int | None:
        """All messages before this offset were handed out; None: no poll since the queue is held."""
        self.note_taken()
        return _position(held) if held in self._polled else None

    def consumed(self, held: ProcessQueue) -> int | None:
        """All before this offset was handed out before the last poll; None: see :meth:`handed_out`."""
        at = self.handed_out(held)
        return at if at is None else min(at, self._last.get(held, at))

    def replace(self, held: ProcessQueue, fresh: ProcessQueue, is_requested: bool) -> None:
        """Continue a queue at another offset. On request, it counts as consumed up to there."""
        self.take_back()
        last = self._last.get(held)
        self.forget(held)
        self._polled.add(fresh)
        if last is not None and not is_requested:
            self._last[fresh] = last

    def forget(self, held: ProcessQueue) -> None:
        """Forget a queue that is no longer held."""
        self.take_back()
        self._filled.pop(held, None)
        self._last.pop(held, None)
        self._new.discard(held)
        self._polled.discard(held)

    def _look_now(self) -> None:
        self._look = None
        self.note_taken()

    def _note(self, made: _Made, end: int) -> None:
        """Remove the messages before ``end`` from their queues: those of a queue together."""
        begin = made.noted
        if end <= begin:
            return
        made.noted = end
        last = range((end - 1) // made.count * made.count, end)  # the last portion
        self._last = {made.owners[at]: made.messages[at].queue_offset for at in reversed(last)}
        for held, count in Counter(made.owners[begin:end]).items():
            held.consume(count)

    def _choose(self, count: int) -> _Made:
        """Choose up to ``count`` messages, in order within each queue; they stay in their queues."""
        made = _Made(count=count)
        for _ in range(len(self._filled)):
            if (wanted := count - len(made.messages)) <= 0:
                break
            held = next(iter(self._filled))
            made.add(held, self._first(held, wanted))
        return made

    def _choose_ahead(self, count: int, ahead: int) -> _Made:
        """Choose ``ahead`` messages for portions of ``count``; one that is not full comes only alone."""
        row = _ROW if count == 1 else count
        queues = self._next_filled(max(1, ahead // row))
        each = max(row, ahead // max(len(queues), 1))
        found = [(held, self._first(held, each)) for held in queues]
        made = _Made(count=count)
        for start in range(0, each, row):
            for held, messages in found:
                made.add(held, messages[start : start + row])
        full = len(made.messages) // count * count or len(made.messages)
        del made.owners[full:], made.messages[full:]
        return made

    def _next_filled(self, most: int) -> list[ProcessQueue]:
        """Return the next queues that have messages to hand out; forget those before them that have none."""
        found: list[ProcessQueue] = []
        for held in list(self._filled):
            if len(found) == most:
                break
            if _has_messages(held):
                found.append(held)
            else:
                del self._filled[held]
        return found

    def _first(self, held: ProcessQueue, count: int) -> list[MessageExt]:
        """Return the first messages of a filled queue, which goes behind the others."""
        messages = held.first(count) if _has_messages(held) else []
        if messages:
            self._filled.move_to_end(held)
            self._polled.add(held)  # also one that was not held yet when the poll began
        else:
            del self._filled[held]
        return messages


def _has_messages(held: ProcessQueue) -> bool:
    """Return whether a queue has messages that may be handed out."""
    return held.has_next and not held.is_paused and not held.is_dropped


def _position(held: ProcessQueue) -> int:
    first = held.min_offset
    return held.next_offset if first is None else first
