"""Queues that a listener's thread fetches: what it asks for them, and what it reads in the answers.

A pulled queue goes on at an offset, so the loop asks again for an answer that the thread cannot use. What is
popped is hidden from everybody until it is acknowledged: the thread keeps such an answer for the loop, which
also waits for one that is late. Messages are acknowledged together with the next pop, when all their calls
have ended.

The thread calls ``requests``, ``read``, ``done`` and ``finish``; the loop calls ``note``.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Generic

from rmqtools.engine.connection.blocking_connection import BlockingConnection
from rmqtools.engine.consumer.decode_answers import Popped, Pulled
from rmqtools.engine.consumer.workers import Arrival, Ended, H
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.engine.reading.pull_command import parse_pull
from rmqtools.errors import RocketMQError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.model.result import PullResult, PullStatus
from rmqtools.protocol.messages.inner_batch import INNER_BATCH, has_sys_flag
from rmqtools.protocol.messages.popped import Portion
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.protocol.wire.template import Request

FETCH_AGAIN_AFTER = 1.0  # seconds after a burst that brought nothing
_USUAL = (PullStatus.FOUND, PullStatus.NO_MATCHED_MSG)


@dataclass(slots=True)
class Tally:
    """The counts of one queue since the loop looked last: of its fetches, and of the calls that ended."""

    fetches: int = 0
    fetched: int = 0
    waited: float = 0.0  # seconds
    calls: int = 0
    long_calls: int = 0
    consumed: int = 0
    seconds: float = 0.0

    def add(self, part: Ended[H]) -> None:
        """Count the calls of one arrival."""
        self.calls += len(part.calls)
        self.long_calls += part.long_calls
        self.consumed += sum(map(len, part.calls))
        self.seconds += part.ended - part.began


@dataclass(slots=True, eq=False, kw_only=True)
class Source(Generic[H]):
    """A queue that a thread fetches. It holds no messages meanwhile.

    Attributes:
        held: the queue.
        topic: its plain name.
        addr: the address of its broker.
        note_fetched: counts messages, fetches and the seconds that these took.
        may_go_on: asked on the loop between two turns.
        returned: done when the loop is to fetch the queue again.
        connection: where its requests are on the wire.
        numbers: of those; the last one asks for messages.
        messages: of the answer in hand.
        arrivals: those of them that no call was made of.
        part: the calls that have ended of the arrival in hand; None: nothing is in hand.
        tally: counts since the loop looked last.
        is_ready: calls of ``messages`` may begin.
        is_over: no further answer may be taken up.
        is_unfit: the thread cannot fetch the queue just now.
        error: why an answer cannot be used.
    """

    held: H
    topic: str
    addr: str
    note_fetched: Callable[..., None]
    may_go_on: Callable[[], bool]
    returned: "asyncio.Future[None]"
    connection: BlockingConnection | None = None
    numbers: list[int] = field(default_factory=list)
    messages: list[MessageExt] = field(default_factory=list)
    arrivals: list[Arrival[H]] = field(default_factory=list)
    part: Ended[H] | None = None
    tally: Tally = field(default_factory=Tally)
    is_ready: bool = False
    is_over: bool = False
    is_unfit: bool = False
    error: RocketMQError | None = None

    @property
    def has_more(self) -> bool:
        """True if the broker has more than the last answer."""
        raise NotImplementedError

    def requests(self) -> list[Request]:
        """Return what is to be asked now, messages last; nothing is on the wire."""
        raise NotImplementedError

    def read(self, answers: Iterator[RemotingCommand]) -> bool:
        """Read the answers to :meth:`requests` as they come; False: the loop is to go on with the queue.

        Whatever is unusual belongs to the loop, which meets it again when it asks, or finds it in here.

        Raises:
            RocketMQError: an answer is broken, or did not come.
        """
        raise NotImplementedError

    def done(self, part: Ended[H]) -> None:
        """Note that all calls of an arrival have ended, and acknowledged everything."""
        raise NotImplementedError

    def finish(self) -> None:
        """Go on after an answer whose calls have all ended."""
        self.part, self.is_ready = None, False

    def note(self) -> None:
        """Note on the loop how far the queue is consumed. Safe while the thread works."""
        raise NotImplementedError

    def note_moved(self) -> None:
        """Note on the loop where the last answer lets the queue continue; also after ``returned``."""
        raise NotImplementedError


@dataclass(slots=True, eq=False, kw_only=True)
class PullSource(Source[ProcessQueue]):
    """A pulled queue.

    Attributes:
        broker_id: the broker that is pulled; an answer that suggests another one ends the burst.
        request: makes the pull from an offset, which also stores the second one; 0: it stores none.
        decode: decodes an answer to a pull from an offset.
        may_store: pulls may carry the consumed offset; asked on the loop.
        note_offset: notes on the loop that all messages before an offset are consumed.
        move: lets the queue continue where an administrator has set it; gets a pull's offset and its answer.
        next_offset: all messages before it are consumed.
        broker_end: the offset after the queue's last message, as of the last answer.
        after: the offset after the answer in hand, whose first message is not before ``next_offset``.
        asked: the offset of the last pull.
        stores: its pulls carry the consumed offset.
        moved: an answer that says where the queue is to continue; brokers give it once.
    """

    broker_id: int
    request: Callable[[int, int], Request]
    decode: Callable[[PullResult, int], Pulled]
    may_store: Callable[[], bool]
    note_offset: Callable[[int], None]
    move: Callable[[int, PullResult], object]
    next_offset: int
    broker_end: int
    after: int = 0
    asked: int = 0
    stores: bool = False
    moved: PullResult | None = None

    @property
    def has_more(self) -> bool:
        """See :class:`Source`."""
        return (self.after if self.is_ready else self.next_offset) < self.broker_end

    def requests(self) -> list[Request]:
        """Return the next pull, also while the calls of the answer before are to be made."""
        if self.is_ready and not self.has_more:
            return []
        self.asked = self.after if self.is_ready else self.next_offset
        return [self.request(self.asked, self.next_offset if self.stores else 0)]

    def read(self, answers: Iterator[RemotingCommand]) -> bool:
        """See :class:`Source`."""
        result = parse_pull(next(answers), self.addr)
        if result.status is PullStatus.OFFSET_ILLEGAL:
            self.moved = result
        if self.is_over or self.held.is_dropped or result.status not in _USUAL:
            return False
        found = self.decode(result, self.next_offset)
        if result.suggest_which_broker_id != self.broker_id:
            return False
        if found.error is not None or found.rest is not None or found.next_offset <= self.next_offset:
            return False
        self.messages, self.after, self.broker_end = found.messages, found.next_offset, result.max_offset
        return True

    def done(self, part: Ended[ProcessQueue]) -> None:
        """See :class:`Source`."""
        self.tally.add(part)

    def finish(self) -> None:
        """See :class:`Source`."""
        self.next_offset = self.after
        Source.finish(self)

    def note(self) -> None:
        """See :class:`Source`."""
        if not self.held.is_dropped:
            self.held.passed(self.next_offset, self.broker_end)
        part, offset = self.part, self.next_offset
        if part is not None and part.calls:
            offset = part.calls[-1][-1].queue_offset + 1
        self.note_offset(offset)
        self.stores = self.may_store()

    def note_moved(self) -> None:
        """See :class:`Source`."""
        moved, self.moved = self.moved, None
        if moved is not None:
            self.move(self.asked, moved)


@dataclass(slots=True, eq=False, kw_only=True)
class PopSource(Source[PopProcessQueue]):
    """A popped queue. The answer to its pop comes before any call is made: none waits behind a slow one.

    Attributes:
        request: makes a pop that is answered at once.
        acknowledge: makes the request that acknowledges messages together; None: the loop is to do it.
        decode: decodes an answer.
        are_wanted: return whether listeners are to have all these messages.
        ended: arrivals whose calls have all ended, and that are not acknowledged.
        noted: how many messages the queue counts that are not acknowledged.
        rest: how many messages the broker has behind the last answer.
        popped: an answer that the loop is to handle.
    """

    request: Callable[[], Request]
    acknowledge: Callable[[Sequence[Ended[PopProcessQueue]]], Request | None]
    decode: Callable[[RemotingCommand], Popped]
    are_wanted: Callable[[Sequence[MessageExt]], bool]
    ended: list[Ended[PopProcessQueue]] = field(default_factory=list)
    noted: int = 0
    rest: int = 0
    popped: Popped | None = None

    @property
    def has_more(self) -> bool:
        """See :class:`Source`."""
        return self.rest > 0

    def requests(self) -> list[Request]:
        """Return the next pop, after what acknowledges the messages of the one before."""
        if self.is_ready or self.is_over:
            return []
        if not self.ended:
            return [self.request()]
        try:
            acknowledgement = self.acknowledge(self.ended)
        except RocketMQError:  # the loop meets it again
            return []
        return [] if acknowledgement is None else [acknowledgement, self.request()]

    def read(self, answers: Iterator[RemotingCommand]) -> bool:
        """See :class:`Source`. The loop gets what is not acknowledged, and the messages popped."""
        if self.ended and next(answers).code == ResponseCode.SUCCESS:
            for part in self.ended:
                self.tally.add(part)
            self.ended = []
        answer = next(answers)
        if answer.code != ResponseCode.SUCCESS:
            return False
        popped = self.decode(answer)
        first = next(popped.portions, None)
        if self._is_usual(popped, first):
            assert first is not None
            self.messages, self.rest = first.messages, popped.rest
            return True
        self.popped = popped if first is None else popped._replace(portions=chain([first], popped.portions))
        return False

    def _is_usual(self, popped: Popped, first: Portion | None) -> bool:
        if self.ended or self.is_over or self.held.is_dropped or popped.broken:
            return False
        if first is None or first.has_more or has_sys_flag(first.messages, INNER_BATCH):
            return False
        return self.are_wanted(first.messages)

    def done(self, part: Ended[PopProcessQueue]) -> None:
        """See :class:`Source`."""
        self.ended.append(part)

    def note(self) -> None:
        """See :class:`Source`."""
        unsettled = len(self.messages) if self.is_ready or self.ended else 0
        self.held.found(unsettled - self.noted)
        self.noted = unsettled

    def note_moved(self) -> None:
        """Do nothing: brokers keep the offsets of popped queues."""
