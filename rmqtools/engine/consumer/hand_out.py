"""Chooses the messages that a pull consumer hands out next, and tracks how far queues are consumed.

A message stays in its ProcessQueue until the application has it. Calling threads of the blocking face take
portions from :attr:`HandOut.ready` by themselves (``sync.loop.Bridge.take``); a portion that is gone there
was taken, and its messages leave their queues. So an interrupted call loses nothing. All methods run on the
event loop.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import count as numbers
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.message import MessageExt

_LOOK_AFTER = 0.01  # seconds until a portion that was made ready is expected to be taken

_Part = tuple[ProcessQueue, list[MessageExt]]


class _PolledPortion(NamedTuple):
    """Messages that one call gets, by queue."""

    number: int
    parts: list[_Part]


class HandOut:
    """The fetched messages of one pull consumer, handed out queue by queue in rotation.

    Attributes:
        ready: portions for calling threads, by number; each thread removes the one it takes.
        size: messages that each portion was made for.
    """

    def __init__(self, plain: Callable[[MessageExt], MessageExt] = lambda message: message) -> None:
        """``plain``: makes of a message as stored the one that the application gets."""
        self.ready: dict[int, list[MessageExt]] = {}
        self.size = 0
        self._plain = plain
        self._numbers = numbers()
        self._made: deque[_PolledPortion] = deque()  # all that were made ready and not noted as taken
        self._last: dict[ProcessQueue, int] = {}  # first offsets, by queue, of what was handed out last
        self._filled: OrderedDict[ProcessQueue, None] = OrderedDict()  # queues with messages, in rotation
        self._new: set[ProcessQueue] = set()  # held since the last poll
        self._polled: set[ProcessQueue] = set()  # all other queues held
        self._arrived = asyncio.Event()
        self._look: asyncio.TimerHandle | None = None

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
        parts = self._choose(count)
        self._note_taken(parts)
        return [self._plain(message) for _, messages in parts for message in messages]

    def make_ready(self, count: int, *, ahead: int = 0) -> bool:
        """Make portions of up to ``count`` messages ready, if none is; return whether there is one.

        ``ahead``: messages of all portions together. Further portions are full, and queues take turns.
        """
        if self.ready:
            return True
        self.note_taken()
        for parts in [self._choose(count)] if ahead <= count else list(self._cut(count, ahead)):
            self._add(parts)
        self.size = count
        if self.ready and self._look is None:
            self._look = asyncio.get_running_loop().call_later(_LOOK_AFTER, self._look_now)
        return bool(self.ready)

    def note_taken(self) -> None:
        """Note which portions are gone, and remove their messages from their queues."""
        while self._made and self._made[0].number not in self.ready:
            self._note_taken(self._made.popleft().parts)

    def take_back(self) -> None:
        """Make no portion ready any longer; those that were taken before are noted."""
        kept: set[int] = set()
        while self.ready:
            try:
                kept.add(self.ready.popitem()[0])
            except KeyError:  # a calling thread was faster
                break
        while self._made:
            portion = self._made.popleft()
            if portion.number not in kept:
                self._note_taken(portion.parts)

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

    def replace(self, held: ProcessQueue, fresh: ProcessQueue) -> None:
        """Continue a queue at another offset on the user's request; it counts as consumed up to there."""
        self.forget(held)
        self._polled.add(fresh)

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

    def _note_taken(self, parts: list[_Part]) -> None:
        if parts:
            self._last = {held: messages[0].queue_offset for held, messages in parts}
        for held, messages in parts:
            held.consume(len(messages))

    def _add(self, parts: list[_Part]) -> None:
        if parts:
            number = next(self._numbers)
            self._made.append(_PolledPortion(number, parts))
            self.ready[number] = [self._plain(message) for _, messages in parts for message in messages]

    def _cut(self, count: int, ahead: int) -> Iterator[list[_Part]]:
        """Cut ``ahead`` messages into portions of ``count``; one that is not full comes only alone."""
        queues = list(islice(self._filled, max(1, ahead // count)))
        each = max(count, ahead // max(len(queues), 1))
        found = [(held, self._first(held, each)) for held in queues]
        pairs = [
            (held, message)
            for start in range(0, each, count)
            for held, messages in found
            for message in messages[start : start + count]
        ]
        for start in range(0, max(1, len(pairs) - count + 1), count):
            portion = groupby(pairs[start : start + count], itemgetter(0))
            yield [(held, [message for _, message in group]) for held, group in portion]

    def _choose(self, count: int) -> list[_Part]:
        """Choose up to ``count`` messages, in order within each queue; they stay in their queues."""
        chosen: list[_Part] = []
        for _ in range(len(self._filled)):
            if count <= 0:
                break
            held = next(iter(self._filled))
            if messages := self._first(held, count):
                count -= len(messages)
                chosen.append((held, messages))
        return chosen

    def _first(self, held: ProcessQueue, count: int) -> list[MessageExt]:
        """Return the first messages of a filled queue, which goes behind the others."""
        messages = [] if held.is_paused or held.is_dropped else held.first(count)
        if messages:
            self._filled.move_to_end(held)
            self._polled.add(held)  # also one that was not held yet when the poll began
        else:
            del self._filled[held]
        return messages


def _position(held: ProcessQueue) -> int:
    first = held.min_offset
    return held.next_offset if first is None else first
