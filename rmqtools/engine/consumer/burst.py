"""Bursts: a listener's thread fetches queues itself and calls the listener at once, without the event loop.

While calls are short and brokers have more, passing messages from the loop to a thread costs more than the
calls. So the loop gives such queues to one thread. In turns of a few milliseconds it takes the answers of all
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
from itertools import islice
from typing import Any, Generic

from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.blocking_connection import BlockingConnection
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.consumer.burst_sources import Source, Tally
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

_MOST_SOURCES = 32  # queues; each has an answer on its way
_TURN = 0.010  # seconds after which the thread lets the loop note what was consumed
_SLOW = 0.050  # seconds after which the loop takes over from a listener that has not returned
_LOOK_AGAIN = 0.005  # seconds, if the thread is between two calls just then
_PATIENCE = 0.05  # seconds for an answer; a slower broker's queues are the loop's, so that others go on


class Burst(Generic[H]):
    """The queues of one consumer that one thread fetches."""

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
            take_up: ``take_up(source, in_call)`` holds an answer in hand of which not all calls are made, and
                returns True. ``in_call``: the thread is still in one of them; False: wait until it ends.
            take_back: settles what a queue still has when the thread fetches it no more; None: it is fetched
                again. Otherwise each queue has its own connection, and keeps that if its answer is late.
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
        self._sources: list[Source[H]] = []
        self._connections: dict[Hashable, BlockingConnection] = {}
        self._served: list[Source[H]] = []  # the thread's own during a turn: the queues it goes on with
        self._in_hand: Source[H] | None = None  # the thread's own: of its answer, not all calls are made
        self._is_over = False
        self._is_closed = False
        self._is_running = False
        self._watch: asyncio.TimerHandle | None = None

    def may_burst(self) -> bool:
        """Return whether another queue may join: calls are short, none hangs, and there is room."""
        if not self._listeners.may_pull or self._is_over or len(self._sources) >= _MOST_SOURCES:
            return False
        return self._workers.longest_call() < _SLOW

    def add(self, source: Source[H]) -> None:
        """Fetch a queue on the thread. When ``source.returned`` is done, the loop fetches it again."""
        self._sources.append(source)
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
        for source in self._sources:
            if source.held.queue == queue:
                source.note()

    async def _run(self) -> None:
        try:
            while self._sources and not self._is_over and self._listeners.on_thread is not None:
                await self._take_turn(self._listeners.on_thread)
        finally:
            self._is_over, self._is_running = self._is_closed, False
            self._return_all()
        self._give_back_all()  # not if this is cancelled: the thread may still use the connections

    async def _take_turn(self, on_thread: OnThread) -> None:
        begun = set(self._sources)
        self._served = self._sources.copy()
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

    async def _end_turn(self, begun: set[Source[H]], failed: Failed[H] | None) -> None:
        """Note what the thread has done, and take back those of ``begun`` that it does not go on with."""
        for one in begun:  # first: what is consumed of a queue that was reset does not count
            one.note_moved()
        source, self._in_hand = self._in_hand, None
        if source is not None:
            if source in self._sources:
                self._hold(source, in_call=False)
            assert source.part is not None
            self._workers.count_ended(source.part)
            if failed is not None:
                await self._workers.take_failed(failed)
            self._return(source)
        served = set(self._served)
        for source in self._sources.copy():
            self._note(source)
            source.is_over = not (self._listeners.pace.is_quick and source.may_go_on())
            if source not in served and source in begun:
                self._return(source)

    def _take_over(self) -> None:
        """Take all queues from a thread whose listener does not return."""
        if not self._is_running:
            return
        self._is_over = True
        if self._worker.call is None:  # the turn ends by itself, or a call begins just now
            self._watch = asyncio.get_running_loop().call_later(_LOOK_AGAIN, self._take_over)
            return
        for source in self._sources.copy():
            if source is self._in_hand:
                self._hold(source, in_call=True)
            else:
                self._note(source)
                self._return(source)

    def _hold(self, source: Source[H], *, in_call: bool) -> None:
        """Hold the answer in hand like one that the loop has fetched."""
        self._note(source)
        if not self._take_up(source, in_call):
            return
        self._sources.remove(source)
        if in_call:
            self._return(source)

    def _note(self, source: Source[H]) -> None:
        """Note the position of a queue and its counts."""
        tally, source.tally = source.tally, Tally()
        if tally.fetches:
            source.note_fetched(count=tally.fetched, times=tally.fetches, seconds=tally.waited)
        if tally.calls:
            count, seconds = tally.consumed, tally.seconds
            success = self._listeners.success
            self._listeners.count(source.topic, success, count=count, seconds=seconds, calls=tally.calls)
            self._listeners.pace.note(tally.calls, tally.long_calls)
        source.note()

    def _return_all(self) -> None:
        for source in self._sources.copy():
            self._return(source)

    def _return(self, source: Source[H]) -> None:
        if source in self._sources:
            self._sources.remove(source)
            if self._take_back is not None:
                self._take_back(source)
        connection = self._connections.pop(source, None)  # its own
        if connection is not None and not source.numbers:
            self._remoting.pool.give_back(connection)
        if not source.returned.done():
            source.returned.set_result(None)

    # on the thread

    def _turn(self) -> Failed[H] | None:
        """Fetch queues and make their calls for a while; return a call that did not simply succeed."""
        failed = self._serve()
        if self._take_back is None:
            self._drain()
        return failed

    def _serve(self) -> Failed[H] | None:
        served, ends = self._served, self._monotonic() + _TURN
        while served and not self._is_over and self._monotonic() < ends:
            for source in [one for one in served if one.is_ready]:  # first those that the last turn left
                failed = self._call(source)
                if self._in_hand is not None:
                    return failed
                self._finish(source)
                if self._is_over or self._monotonic() >= ends:
                    return None
            for source in served.copy():
                if source.numbers and not self._next_answer(source):
                    source.is_unfit = not source.is_over
                    served.remove(source)
            self._ask_all()
        return None

    def _finish(self, source: Source[H]) -> None:
        """Go on after an answer whose calls have all ended; with the queue only if the broker has more."""
        source.finish()
        if not source.numbers and not source.has_more:
            self._served.remove(source)

    def _ask_all(self) -> None:
        """Send the next requests of all queues that have none on the wire: on each connection together."""
        asked: dict[Hashable, list[tuple[Source[H], list[Request]]]] = {}
        for source in self._served.copy():
            if source.numbers:
                continue
            if requests := source.requests():
                line: Hashable = source.addr if self._take_back is None else source
                asked.setdefault(line, []).append((source, requests))
            elif not source.is_ready:
                self._served.remove(source)
        for line, several in asked.items():
            self._ask(line, several)

    def _ask(self, line: Hashable, several: list[tuple[Source[H], list[Request]]]) -> None:
        try:
            connection = self._connections.get(line) or self._connect(line, several[0][0].addr)
            signed = [self._remoting.signed(one) for _, requests in several for one in requests]
            numbers = iter(connection.start(*signed))
        except RocketMQError:
            self._disconnect(line)
            for source, _ in several:
                source.is_unfit = True
                self._served.remove(source)
            return
        for source, requests in several:
            source.connection, source.numbers = connection, list(islice(numbers, len(requests)))

    def _next_answer(self, source: Source[H]) -> bool:
        """Make a queue's answer ready; False: the loop is to go on with the queue."""
        began = self._monotonic()
        try:
            if not source.read(self._answers(source)):
                return False
            source.arrivals = self._arrange(source.held, source.messages) if source.messages else []
        except RocketMQError as error:
            if not source.numbers:
                source.error = error
            elif self._connections.get(source.addr) is source.connection:
                self._disconnect(source.addr)
            return False
        source.tally.fetches += 1
        source.tally.fetched += len(source.messages)
        source.tally.waited += self._monotonic() - began
        source.is_ready = True
        return True

    def _answers(self, source: Source[H]) -> Iterator[RemotingCommand]:
        """Yield the answers to a queue's requests as they come."""
        assert source.connection is not None
        while source.numbers:
            answer = source.connection.finish(source.numbers[0], _PATIENCE)
            del source.numbers[0]
            yield answer

    def _call(self, source: Source[H]) -> Failed[H] | None:
        """Make the calls of the answer in hand; return the first that did not simply succeed.

        Afterwards :attr:`_in_hand` is None if all were made and succeeded.
        """
        self._in_hand = source
        while source.arrivals:
            source.part = part = Ended(source.arrivals.pop(0), began=self._monotonic())
            made = self._make_calls(part)
            if made is not True:
                return made or None
            source.done(part)
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
        """Read the answers that queues wait for which the loop takes back.

        A pull on its way could store an old offset, and its answer may be the only report of a new one.
        """
        for source in self._served:
            if source.numbers and (self._is_over or source is self._in_hand):
                source.is_over = True
                self._next_answer(source)

    def _give_back_all(self) -> None:
        for connection in self._connections.values():
            self._remoting.pool.give_back(connection)
        self._connections.clear()

    def _disconnect(self, line: Hashable) -> None:
        """Use a connection no more; the loop goes on with the queues that wait for it."""
        if (connection := self._connections.pop(line, None)) is not None:
            self._remoting.pool.give_back(connection)
