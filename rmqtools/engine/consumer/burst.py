"""Bursts: a listener's thread fetches queues itself and calls the listener at once, without the event loop.

While calls are short and brokers have more, passing messages from the loop to a thread costs more than the
calls. So the loop lends such queues to one thread. In turns of a few milliseconds it takes the answers of all
these queues, sends their next requests, and makes the calls. Between two turns the loop notes what was
consumed, and takes back the queues that are dropped, suspended or empty. Heartbeats, rebalance and long polls
stay with the loop.

If a call turns slow, the loop takes over in the middle of the turn: the other queues at once, and the calls
of the answer in hand that have not begun. Loop and thread take calls from one iterator, so each is made once.
The loop sets ``_is_over`` before it reads ``worker.call``; the thread clears ``worker.call`` before it reads
``_is_over``. So a thread that is in a call stops after it, and a queue has one owner at any time.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Generic

from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.blocking_connection import BlockingConnection
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.consumer.lent import Lent, Tally
from rmqtools.engine.consumer.listeners import LONG_CALL, Listeners, OnThread
from rmqtools.engine.consumer.workers import Arrival, Ended, Failed, H, Workers, new_context
from rmqtools.errors import RemotingConnectError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.consume import ACK_ALL
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.protocol.wire.template import Request

log = get_logger(__name__)

_MOST_LENT = 32  # queues; each has an answer on its way
_TURN = 0.010  # seconds after which the thread lets the loop note what was consumed
_SLOW = 0.050  # seconds after which the loop takes over from a listener that has not returned
_LOOK_AGAIN = 0.005  # seconds, if the thread is between two calls just then
_PATIENCE = 0.05  # seconds for an answer; a slower broker's queues are the loop's, so that others go on


class Burst(Generic[H]):
    """The queues of one consumer that are lent to a thread."""

    def __init__(
        self,
        client: ClientCore,
        listeners: Listeners,
        workers: Workers[H],
        *,
        arrange: Callable[[H, Sequence[MessageExt]], list[Arrival[H]]],
        take_up: Callable[[Any, bool], bool],
        take_back: Callable[[Any], None] | None = None,
    ) -> None:
        """Make it.

        Args:
            client: of the consumer.
            listeners: its listeners.
            workers: settle what is unusual.
            arrange: makes arrivals of messages that came just now; called on the thread.
            take_up: ``take_up(lent, in_call)`` holds an answer in hand of which not all calls are made, and
                returns True. ``in_call``: the thread is still in one of them; False: wait until it ends.
            take_back: settles what a queue still has when its loan ends; None: it is fetched again. Otherwise
                each queue has its own connection, and keeps that if its answer is late.
        """
        self._remoting = client.remoting
        self._monotonic = client.clock.monotonic
        self._listeners = listeners
        self._arrange = arrange
        self._take_up = take_up
        self._take_back = take_back
        self._workers = workers
        self._worker = workers.enlist()
        self._tasks = Background()
        self._lent: list[Lent[H]] = []
        self._connections: dict[Hashable, BlockingConnection] = {}
        self._served: list[Lent[H]] = []  # the thread's own during a turn: the queues it goes on with
        self._in_hand: Lent[H] | None = None  # the thread's own: of its answer, not all calls are made
        self._is_over = False
        self._is_closed = False
        self._is_running = False
        self._watch: asyncio.TimerHandle | None = None

    def may_lend(self) -> bool:
        """Return whether another queue may be lent: calls are short, none hangs, and there is room."""
        if not self._listeners.may_pull or self._is_over or len(self._lent) >= _MOST_LENT:
            return False
        return self._workers.longest_call() < _SLOW

    def lend(self, lent: Lent[H]) -> None:
        """Let the thread fetch a queue until ``lent.returned`` is done; then the loop fetches it again."""
        self._lent.append(lent)
        if not self._is_running:
            self._is_running = True
            self._tasks.spawn("burst", self._run())

    async def close(self, timeout: float) -> None:
        """Begin no further listener call, and wait at most ``timeout`` seconds for the one that runs."""
        self._is_over = self._is_closed = True
        if self._take_back is not None:  # the listener that closes waits for what it has consumed before
            self._take_over()
        await self._listeners.end(self._tasks, timeout)

    # on the loop

    def note_queue(self, queue: MessageQueue) -> None:
        """Note how far a queue is consumed just now: pulls of the thread carry as much."""
        for lent in self._lent:
            if lent.held.queue == queue:
                lent.note()

    async def _run(self) -> None:
        try:
            while self._lent and not self._is_over and (on_thread := self._listeners.on_thread) is not None:
                await self._take_turn(on_thread)
            self._return_all()
            self._give_back_all()
        finally:  # if it is cancelled, the thread may still use the connections
            self._is_over, self._is_running = self._is_closed, False
            self._return_all()

    async def _take_turn(self, on_thread: OnThread) -> None:
        begun = set(self._lent)
        self._served = self._lent.copy()
        self._watch = asyncio.get_running_loop().call_later(_SLOW, self._take_over)
        failed = None
        try:
            failed = await on_thread(self._turn)
        except Exception as error:  # outermost frame of a turn: the loop fetches these queues again
            log.error("burst_failed", reason=repr(error), exc_info=error)
            self._is_over = True
        finally:
            self._watch.cancel()
        await self._end_turn(begun, failed)

    async def _end_turn(self, begun: set[Lent[H]], failed: Failed[H] | None) -> None:
        """Note what the thread has done, and take back those of ``begun`` that it does not go on with."""
        lent, self._in_hand = self._in_hand, None
        if lent is not None:
            if lent in self._lent:
                self._hold(lent, in_call=False)
            assert lent.part is not None
            self._workers.count_ended(lent.part)
            if failed is not None:
                await self._workers.take_failed(failed)
            self._return(lent)
        served = set(self._served)
        for lent in self._lent.copy():
            self._note(lent)
            lent.is_over = not (self._listeners.pace.is_quick and lent.may_go_on())
            if lent not in served and lent in begun:
                self._return(lent)

    def _take_over(self) -> None:
        """Take all queues from a thread whose listener does not return."""
        if not self._is_running:
            return
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

    def _hold(self, lent: Lent[H], *, in_call: bool) -> None:
        """Hold the answer in hand like one that the loop has fetched."""
        self._note(lent)
        if not self._take_up(lent, in_call):
            return
        self._lent.remove(lent)
        if in_call:
            self._return(lent)

    def _note(self, lent: Lent[H]) -> None:
        """Note the position of a queue and its counts."""
        tally, lent.tally = lent.tally, Tally()
        if tally.fetches:
            lent.note_fetched(count=tally.fetched, times=tally.fetches, seconds=tally.waited)
        if tally.calls:
            count, seconds = tally.consumed, tally.seconds
            success = self._listeners.success
            self._listeners.count(lent.topic, success, count=count, seconds=seconds, calls=tally.calls)
            self._listeners.pace.note(tally.calls, tally.long_calls)
        lent.note()

    def _return_all(self) -> None:
        for lent in self._lent.copy():
            self._return(lent)

    def _return(self, lent: Lent[H]) -> None:
        if lent in self._lent:
            self._lent.remove(lent)
            if self._take_back is not None:
                self._take_back(lent)
        connection = self._connections.pop(lent, None)  # its own
        if connection is not None and not lent.numbers:
            self._remoting.pool.give_back(connection)
        if not lent.returned.done():
            lent.returned.set_result(None)

    # on the thread

    def _turn(self) -> Failed[H] | None:
        """Fetch queues and make their calls for a while; return a call that did not simply succeed."""
        failed = self._serve()
        if self._is_over and self._take_back is None:
            self._drain()
        return failed

    def _serve(self) -> Failed[H] | None:
        served, ends = self._served, self._monotonic() + _TURN
        while served and not self._is_over and self._monotonic() < ends:
            for lent in [one for one in served if one.is_ready]:  # first those that the last turn left
                failed = self._call(lent)
                if self._in_hand is not None:
                    return failed
                self._finish(lent)
                if self._is_over or self._monotonic() >= ends:
                    return None
            for lent in served.copy():
                if lent.numbers and not self._next_answer(lent):
                    lent.is_unfit = not lent.is_over
                    served.remove(lent)
            self._ask_all()
        return None

    def _finish(self, lent: Lent[H]) -> None:
        """Go on after an answer whose calls have all ended; with the queue only if the broker has more."""
        lent.finish()
        if not lent.numbers and not lent.has_more:
            self._served.remove(lent)

    def _ask_all(self) -> None:
        """Send the next requests of all queues that have none on the wire: on each connection together."""
        asked: dict[Hashable, list[tuple[Lent[H], list[Request]]]] = {}
        for lent in self._served.copy():
            if lent.numbers:
                continue
            if requests := lent.requests():
                line: Hashable = lent.addr if self._take_back is None else lent
                asked.setdefault(line, []).append((lent, requests))
            elif not lent.is_ready:
                self._served.remove(lent)
        for line, several in asked.items():
            self._ask(line, several)

    def _ask(self, line: Hashable, several: list[tuple[Lent[H], list[Request]]]) -> None:
        try:
            connection = self._connections.get(line) or self._connect(line, several[0][0].addr)
            signed = [self._remoting.signed(one) for _, requests in several for one in requests]
            numbers = iter(connection.start(*signed))
        except RocketMQError:
            self._disconnect(line)
            for lent, _ in several:
                lent.is_unfit = True
                self._served.remove(lent)
            return
        for lent, requests in several:
            lent.connection, lent.numbers = connection, list(islice(numbers, len(requests)))

    def _next_answer(self, lent: Lent[H]) -> bool:
        """Make a queue's answer ready; False: the loop is to go on with the queue."""
        began = self._monotonic()
        try:
            if not lent.take(self._answers(lent)):
                return False
            lent.arrivals = self._arrange(lent.held, lent.messages) if lent.messages else []
        except RocketMQError as error:
            if not lent.numbers:
                lent.error = error
            elif self._connections.get(lent.addr) is lent.connection:
                self._disconnect(lent.addr)
            return False
        lent.tally.fetches += 1
        lent.tally.fetched += len(lent.messages)
        lent.tally.waited += self._monotonic() - began
        lent.is_ready = True
        return True

    def _answers(self, lent: Lent[H]) -> Iterator[RemotingCommand]:
        """Yield the answers to a queue's requests as they come."""
        assert lent.connection is not None
        while lent.numbers:
            answer = lent.connection.finish(lent.numbers[0], _PATIENCE)
            del lent.numbers[0]
            yield answer

    def _call(self, lent: Lent[H]) -> Failed[H] | None:
        """Make the calls of the answer in hand; return the first that did not simply succeed.

        Afterwards :attr:`_in_hand` is None if all were made and succeeded.
        """
        self._in_hand = lent
        while lent.arrivals:
            lent.part = part = Ended(lent.arrivals.pop(0), began=self._monotonic())
            made = self._make_calls(part)
            if made is not True:
                return made or None
            lent.done(part)
        self._in_hand = None
        return None

    def _make_calls(self, part: Ended[H]) -> Failed[H] | bool:
        """Make the calls of an arrival; return whether all were made, or one that did not simply succeed."""
        arrival, worker, monotonic, listeners = part.arrival, self._worker, self._monotonic, self._listeners
        held, topic, queue, until = arrival.held, arrival.topic, arrival.queue, arrival.until
        call, success, is_orderly = listeners.call_here, listeners.success, listeners.is_orderly
        calls, now = arrival.calls, part.began
        while not (self._is_over or held.is_dropped or now >= until) and held.is_locked:
            messages = next(calls, None)
            if messages is None:
                return True
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
        return False

    def _connect(self, line: Hashable, addr: str) -> BlockingConnection:
        connection = self._remoting.take_blocking(addr, _PATIENCE)
        if connection is None:
            raise RemotingConnectError(f"no connection of a thread to {addr}")
        self._connections[line] = connection
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

    def _disconnect(self, line: Hashable) -> None:
        """Use a connection no more; the loop goes on with the queues that wait for it."""
        if (connection := self._connections.pop(line, None)) is not None:
            self._remoting.pool.give_back(connection)
