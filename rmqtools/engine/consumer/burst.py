"""Bursts: a listener's thread pulls queues itself and calls the listener at once, without the event loop.

While calls are short and brokers have more, passing messages from the loop to a thread costs more than the
calls. So the loop lends such queues to one thread. In turns of a few milliseconds it takes the answers of all
these queues, sends their next pulls, and makes the calls. Between two turns the loop notes what was consumed,
and takes back the queues that are dropped, suspended or empty. Heartbeats, rebalance and long polls stay with
the loop.

If a call turns slow, the loop takes over in the middle of the turn: the other queues at once, and the calls
of the answer in hand that have not begun. Loop and thread take calls from one iterator, so each is made once.
The loop sets ``_is_over`` before it reads ``worker.call``; the thread clears ``worker.call`` before it reads
``_is_over``. So a thread that is in a call stops after it, and a queue has one owner at any time.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.blocking_connection import BlockingConnection
from rmqtools.engine.consumer.decode_answers import Pulled
from rmqtools.engine.consumer.listeners import LONG_CALL, Listeners, OnThread
from rmqtools.engine.consumer.workers import Arrival, Ended, Failed, Workers, calls_of, new_context
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.engine.reading.pull_command import parse_pull
from rmqtools.errors import RemotingConnectError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.consume import ACK_ALL
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult, PullStatus
from rmqtools.protocol.wire.template import Request

log = get_logger(__name__)

_MOST_LENT = 32  # queues; each has an answer on its way
_TURN = 0.010  # seconds after which the thread lets the loop note what was consumed
_SLOW = 0.050  # seconds after which the loop takes over from a listener that has not returned
_LOOK_AGAIN = 0.005  # seconds, if the thread is between two calls just then
_PATIENCE = 0.05  # seconds for an answer; a slower broker's queues are the loop's, so that others go on
_USUAL = (PullStatus.FOUND, PullStatus.NO_MATCHED_MSG)


@dataclass(slots=True)
class _Tally:
    """The counts of one queue since the loop looked last: of its pulls, and of the calls that ended."""

    pulls: int = 0
    pulled: int = 0
    waited: float = 0.0  # seconds
    calls: int = 0
    long_calls: int = 0
    consumed: int = 0
    seconds: float = 0.0


@dataclass(slots=True, eq=False)
class Lent:
    """A queue that is lent to a thread. It holds no messages meanwhile.

    Attributes:
        held: the queue.
        topic: its plain name.
        queue: the queue in the listeners' context.
        broker_id: the broker that is pulled; an answer that suggests another one ends the loan.
        addr: its address.
        request: makes the pull from an offset, which also stores the second one; 0: it stores none.
        decode: decodes an answer to a pull from an offset.
        note_pulls: counts messages, pulls and the seconds that these took.
        may_go_on: asked on the loop between two turns.
        may_store: pulls may carry the consumed offset; asked on the loop, too.
        returned: done when the loop is to pull the queue again.
        next_offset: all messages before it are consumed.
        broker_end: the offset after the queue's last message, as of the last answer.
        connection: where its pull is on the wire.
        number: of that pull; None: there is none.
        messages: the answer in hand, the first after ``next_offset``.
        after: the offset after them.
        part: their calls that have ended; None: nothing is in hand.
        tally: counts since the loop looked last.
        is_ready: calls of ``messages`` may begin.
        stores: its pulls carry the consumed offset.
        moved: an answer that says where the queue is to continue; brokers give it once.
        is_over: no further answer may be taken up.
        is_unfit: the thread cannot pull the queue just now.
    """

    held: ProcessQueue
    topic: str
    queue: MessageQueue
    broker_id: int
    addr: str
    request: Callable[[int, int], Request]
    decode: Callable[[PullResult, int], Pulled]
    note_pulls: Callable[..., None]
    may_go_on: Callable[[], bool]
    may_store: Callable[[], bool]
    returned: "asyncio.Future[None]"
    next_offset: int
    broker_end: int
    connection: BlockingConnection | None = None
    number: int | None = None
    messages: list[MessageExt] = field(default_factory=list)
    after: int = 0
    part: Ended[ProcessQueue] | None = None
    tally: _Tally = field(default_factory=_Tally)
    is_ready: bool = False
    stores: bool = False
    moved: PullResult | None = None
    is_over: bool = False
    is_unfit: bool = False

    @property
    def committable(self) -> int:
        """All messages before this offset are consumed. Safe while the thread works."""
        part = self.part
        return part.calls[-1][-1].queue_offset + 1 if part is not None and part.calls else self.next_offset


class Burst:
    """The queues of one consumer that are lent to a thread."""

    def __init__(
        self,
        member: Member,
        listeners: Listeners,
        workers: Workers[ProcessQueue],
        *,
        call_size: int,
        take_up: Callable[[Lent, bool], bool],
    ) -> None:
        """Make it.

        Args:
            member: the member that holds the queues.
            listeners: its listeners.
            workers: settle what is unusual.
            call_size: messages of a call, at most.
            take_up: ``take_up(lent, in_call)`` holds an answer in hand of which not all calls are made, and
                returns True. ``in_call``: the thread is still in one of them; False: wait until it ends.
        """
        self._member = member
        self._remoting = member.client.remoting
        self._clock = member.client.clock
        self._monotonic = member.client.clock.monotonic
        self._listeners = listeners
        self._take_up = take_up
        self._workers = workers
        self._worker = workers.enlist()
        self._call_size = call_size
        self._tasks = Background()
        self._lent: list[Lent] = []
        self._connections: dict[str, BlockingConnection] = {}
        self._served: list[Lent] = []  # the thread's own during a turn: the queues it goes on with
        self._in_hand: Lent | None = None  # the thread's own: of its answer, not all calls are made
        self._is_over = False
        self._is_closed = False
        self._is_running = False
        self._watch: asyncio.TimerHandle | None = None
        member.held.on_leave(self._note_leaving)

    def may_lend(self) -> bool:
        """Return whether another queue may be lent: calls are short, and there is room."""
        return self._listeners.may_pull and not self._is_over and len(self._lent) < _MOST_LENT

    def lend(self, lent: Lent) -> None:
        """Have the thread pull a queue. After ``lent.returned``, the loop goes on at ``held.next_offset``."""
        self._lent.append(lent)
        if not self._is_running:
            self._is_running = True
            self._tasks.spawn("burst", self._run())

    async def close(self, timeout: float) -> None:
        """Begin no further listener call, and wait at most ``timeout`` seconds for the one that runs."""
        self._is_over = self._is_closed = True
        await self._listeners.end(self._tasks, timeout)

    # on the loop

    def _note_leaving(self, held: ProcessQueue) -> None:
        """Note how far a queue is consumed that is being given up."""
        for lent in self._lent:
            if lent.held is held:
                self._note_offset(lent)

    async def _run(self) -> None:
        try:
            while self._lent and not self._is_over and (on_thread := self._listeners.on_thread) is not None:
                await self._take_turn(on_thread)
            self._give_back_all()
        finally:
            self._is_over, self._is_running = self._is_closed, False
            for lent in self._lent.copy():
                self._return(lent)

    async def _take_turn(self, on_thread: OnThread) -> None:
        begun = set(self._lent)
        self._served = self._lent.copy()
        self._watch = asyncio.get_running_loop().call_later(_SLOW, self._take_over)
        failed = None
        try:
            failed = await on_thread(self._turn)
        except Exception as error:  # outermost frame of a turn: the loop pulls these queues again
            log.error("burst_failed", reason=repr(error), exc_info=error)
            self._is_over = True
        finally:
            self._watch.cancel()
        await self._end_turn(begun, failed)

    async def _end_turn(self, begun: set[Lent], failed: Failed[ProcessQueue] | None) -> None:
        """Note what the thread has done, and take back those of ``begun`` that it does not go on with."""
        lent, self._in_hand = self._in_hand, None
        if lent is not None:
            if lent in self._lent:
                self._hold(lent, in_call=False)
            assert lent.part is not None
            await self._workers.take_left(lent.part, failed)
            self._return(lent)
        served = set(self._served)
        for lent in self._lent.copy():
            self._note(lent)
            lent.stores = lent.may_store()
            lent.is_over = not (self._listeners.pace.is_quick and lent.may_go_on())
            if lent not in served and lent in begun:
                self._return(lent)

    def _take_over(self) -> None:
        """Take all queues from a thread whose listener does not return."""
        self._is_over = True
        if self._worker.call is None:  # the turn ends by itself, or a call begins just now
            self._watch = asyncio.get_running_loop().call_later(_LOOK_AGAIN, self._take_over)
            return
        for lent in self._lent.copy():
            if lent is self._in_hand:
                self._hold(lent, in_call=True)
            else:
                self._note(lent)
                self._return(lent)

    def _hold(self, lent: Lent, *, in_call: bool) -> None:
        """Hold the answer in hand like one that the loop has pulled."""
        self._note(lent)
        if not self._take_up(lent, in_call):
            return
        lent.held.next_offset = lent.after
        self._lent.remove(lent)
        if in_call:
            self._return(lent)

    def _note(self, lent: Lent) -> None:
        """Note the position of a queue and its counts."""
        tally, lent.tally = lent.tally, _Tally()
        if tally.pulls:
            lent.held.pulled()
            lent.note_pulls(count=tally.pulled, pulls=tally.pulls, seconds=tally.waited)
        if tally.calls:
            count, seconds = tally.consumed, tally.seconds
            success = self._listeners.success
            self._listeners.count(lent.topic, success, count=count, seconds=seconds, calls=tally.calls)
            self._listeners.pace.note(tally.calls, tally.long_calls)
            lent.held.last_consume_ms = self._clock.now_ms()
        if not lent.held.is_dropped:
            lent.held.next_offset, lent.held.broker_end = lent.next_offset, lent.broker_end
        self._note_offset(lent)

    def _note_offset(self, lent: Lent) -> None:
        if self._member.held.holds(lent.held):
            self._member.offsets.update(lent.held.queue, lent.committable, increase_only=True)

    def _return(self, lent: Lent) -> None:
        if lent in self._lent:
            self._lent.remove(lent)
        if not lent.returned.done():
            lent.returned.set_result(None)

    # on the thread

    def _turn(self) -> Failed[ProcessQueue] | None:
        """Pull queues and make their calls for a while; return a call that did not simply succeed."""
        failed = self._serve()
        if self._is_over:
            self._drain()
        return failed

    def _serve(self) -> Failed[ProcessQueue] | None:
        served, ends = self._served, self._monotonic() + _TURN
        while served and not self._is_over and self._monotonic() < ends:
            for lent in [one for one in served if one.is_ready]:  # first those that the last turn left
                failed = self._call(lent) if lent.messages else None
                if self._in_hand is not None:
                    return failed
                self._finish(lent)
                if self._is_over or self._monotonic() >= ends:
                    return None
            for lent in served.copy():
                if lent.number is not None and not self._next_answer(lent):
                    lent.is_unfit = not lent.is_over
                    served.remove(lent)
            self._ask_all()
        return None

    def _finish(self, lent: Lent) -> None:
        """Go on after an answer whose calls have all ended; with the queue only if the broker has more."""
        lent.next_offset, lent.part, lent.is_ready = lent.after, None, False
        if lent.number is None:
            self._served.remove(lent)

    def _ask_all(self) -> None:
        """Send the next pulls of all queues that have none on the wire: to each broker together."""
        by_addr: dict[str, list[Lent]] = {}
        for lent in self._served:
            if lent.number is None and not (lent.is_ready and lent.after >= lent.broker_end):
                by_addr.setdefault(lent.addr, []).append(lent)
        for addr, lents in by_addr.items():
            try:
                connection = self._connections.get(addr) or self._connect(addr)
                numbers = connection.start(*map(self._request, lents))
            except RocketMQError:
                self._disconnect(addr)
                for lent in lents:
                    lent.is_unfit = True
                    self._served.remove(lent)
                continue
            for lent, number in zip(lents, numbers, strict=True):
                lent.connection, lent.number = connection, number

    def _request(self, lent: Lent) -> Request:
        offset = lent.after if lent.is_ready else lent.next_offset
        return self._remoting.signed(lent.request(offset, lent.next_offset if lent.stores else 0))

    def _next_answer(self, lent: Lent) -> bool:
        """Make a queue's answer ready; False: the loop is to go on with the queue.

        Whatever is unusual belongs to the loop, which meets it again when it pulls, or finds it in the loan.
        """
        assert lent.connection is not None
        assert lent.number is not None
        began = self._monotonic()
        try:
            answer = lent.connection.finish(lent.number, _PATIENCE)
        except RocketMQError:
            if self._connections.get(lent.addr) is lent.connection:
                self._disconnect(lent.addr)
            return False
        lent.number = None
        try:
            result = parse_pull(answer, lent.addr)
            if result.status is PullStatus.OFFSET_ILLEGAL:
                lent.moved = result
            if lent.is_over or lent.held.is_dropped or result.status not in _USUAL:
                return False
            found = lent.decode(result, lent.next_offset)
        except RocketMQError:
            return False
        if result.suggest_which_broker_id != lent.broker_id:
            return False
        if found.error is not None or found.rest is not None or found.next_offset <= lent.next_offset:
            return False
        lent.messages, lent.after, lent.broker_end = found.messages, found.next_offset, result.max_offset
        lent.tally.pulls += 1
        lent.tally.pulled += len(found.messages)
        lent.tally.waited += self._monotonic() - began
        lent.is_ready = True
        return True

    def _call(self, lent: Lent) -> Failed[ProcessQueue] | None:
        """Make the calls of the answer in hand; return the first that did not simply succeed.

        Afterwards :attr:`_in_hand` is None if all were made and succeeded.
        """
        held, worker, monotonic = lent.held, self._worker, self._monotonic
        call, success, until = self._listeners.call_here, self._listeners.success, self._until(held)
        topic, queue, is_orderly = lent.topic, lent.queue, self._listeners.is_orderly
        arrival = Arrival(held, topic, queue, calls_of(lent.messages, self._call_size))
        calls, now = arrival.calls, monotonic()
        lent.part = part = Ended(arrival, began=now)
        self._in_hand = lent
        while not (self._is_over or held.is_dropped or now > until) and held.is_locked:
            messages = next(calls, None)
            if messages is None:
                self._tally(lent, part)
                return None
            worker.began = now
            worker.call = arrival, messages
            context = new_context(queue, 0, ACK_ALL, None, True, is_orderly)
            status = call(topic, messages, context)
            before, now = now, monotonic()
            if status is not success or context.ack_index is not ACK_ALL or context.auto_commit is not True:
                worker.call = None
                return Failed((arrival, messages), now - before, status, context)
            if now - before > LONG_CALL:
                part.long_calls += 1
            part.ended = now
            part.calls.append(messages)
            worker.call = None
        return None

    def _until(self, held: ProcessQueue) -> float:
        """Return the monotonic time after which no call of a queue may begin."""
        return held.lock_ends if self._member.is_orderly else inf

    def _tally(self, lent: Lent, part: Ended[ProcessQueue]) -> None:
        """Count an answer whose calls have all ended: nothing is in hand any more."""
        tally = lent.tally
        tally.calls += len(part.calls)
        tally.long_calls += part.long_calls
        tally.consumed += len(lent.messages)
        tally.seconds += part.ended - part.began
        self._in_hand = None

    def _connect(self, addr: str) -> BlockingConnection:
        connection = self._remoting.take_blocking(addr, _PATIENCE)
        if connection is None:
            raise RemotingConnectError(f"no connection of a thread to {addr}")
        self._connections[addr] = connection
        return connection

    def _drain(self) -> None:
        """Wait until no pull is on its way any more: it could store an old offset."""
        for connection in self._connections.values():
            with suppress(RocketMQError):
                connection.drain(_PATIENCE)

    def _give_back_all(self) -> None:
        for connection in self._connections.values():
            self._remoting.pool.give_back(connection)
        self._connections.clear()

    def _disconnect(self, addr: str) -> None:
        """Use a connection no more; the loop goes on with the queues that wait for it."""
        if (connection := self._connections.pop(addr, None)) is not None:
            self._remoting.pool.give_back(connection)
