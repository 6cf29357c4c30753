"""Calls listeners for waiting messages: coroutines in tasks, functions on threads.

Coroutine listeners are called by up to ``consume_threads`` tasks. Blocking ones are called on as many
threads, which take the waiting messages call by call, without the loop between two calls
(docs/decisions/0029). Results of calls that acknowledge everything are handled together; that of another
call is handled before its worker begins the next one.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, repeat
from math import inf
from operator import itemgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from rmqtools.clock import Clock, let_others_run
from rmqtools.engine.connection.background import Background
from rmqtools.engine.consumer.crossing import Crossing
from rmqtools.engine.consumer.listeners import (
    LONG_CALL,
    ConsumeStatus,
    Listeners,
)
from rmqtools.engine.finish import finish
from rmqtools.engine.group.held_queue import HeldQueue
from rmqtools.model.consume import ACK_ALL, ConsumeConcurrentlyStatus, ConsumeContext
from rmqtools.model.frozen import maker_of
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.reconsume import listener_batches

_SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
_LONGEST_RUN = 0.010  # seconds after which a worker begins no further call and lets waiting work come first

_consume_context = maker_of(ConsumeContext)

H = TypeVar("H", bound=HeldQueue)


@dataclass(slots=True, eq=False)
class Arrival(Generic[H]):
    """Common data of messages that arrived together.

    Attributes:
        held: the queue they are counted in.
        topic: their topic, by its plain name.
        queue: the queue in the listeners' context.
        until: the monotonic time from which on others may have them, and no call may begin.
    """

    held: H
    topic: str
    queue: MessageQueue
    until: float = inf


Call = tuple[Arrival[H], Sequence[MessageExt]]
"""The messages of one listener call. A plain tuple: there is one for each message at the defaults."""
_Ended = tuple[Arrival[H] | None, Call[H] | None, float]
"""A call that acknowledged everything: its arrival, itself, its seconds. Without an arrival: a call that may
not begin, or none, only to wake the loop."""
_arrival_of, _messages_of = itemgetter(0), itemgetter(1)


class ResultHandler(Protocol[H]):
    """Handler of the results of listener calls. All of it runs on the loop."""

    def consumed(self, arrival: Arrival[H], messages: list[MessageExt]) -> None:
        """Handle messages of calls that acknowledged all of theirs."""

    async def not_all_consumed(self, call: Call[H], status: ConsumeStatus, context: ConsumeContext) -> None:
        """Handle a call that did not acknowledge everything."""

    def not_begun(self, call: Call[H]) -> None:
        """Handle a call that may not begin any more."""

    def again(self, call: Call[H]) -> None:
        """Handle a call whose worker failed, and not its listener."""


class _Failed(NamedTuple, Generic[H]):
    """A call of a blocking listener that did not acknowledge all its messages."""

    call: Call[H]
    seconds: float
    status: ConsumeStatus
    context: ConsumeContext


@dataclass(slots=True, eq=False)
class _Consumed:
    """Totals of the finished calls of one arrival."""

    messages: list[MessageExt] = field(default_factory=list)
    count: int = 0
    calls: int = 0
    long_calls: int = 0
    seconds: float = 0.0


@dataclass(slots=True, eq=False)
class _Worker(Generic[H]):
    """Calls listeners one after the other.

    Attributes:
        has_begun: it has taken up its work.
        began: when the call began, by the monotonic clock; set before ``call``.
        call: what its listener has now.
    """

    has_begun: bool = False
    began: float = 0.0
    call: Call[H] | None = None


class Workers(Generic[H]):
    """The workers of one consumption, and the calls that wait for them."""

    def __init__(self, clock: Clock, listeners: Listeners, results: ResultHandler[H], *, most: int) -> None:
        """``most``: how many listener calls may run at once."""
        self._clock = clock
        self._listeners = listeners
        self._results = results
        self._most = most
        self._waiting: deque[Call[H]] = deque()
        self._working: set[_Worker[H]] = set()
        self._tasks = Background()
        self._newest: _Worker[H] = _Worker(has_begun=True)
        self._ended: Crossing[_Ended[H]] = Crossing(self._take_ended)
        self._given_up: dict[int, Call[H]] = {}  # by id: their results do not count
        self._yielding = 0  # tasks that only let others run, and will take what waits
        self._closing = False

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, arrival: Arrival[H], messages: Sequence[MessageExt], *, at_once: int) -> None:
        """Have the listener called with these messages, up to ``at_once`` a call, when a worker is free."""
        batches: Iterable[Sequence[MessageExt]] = (
            zip(messages) if at_once == 1 else listener_batches(messages, at_once)
        )
        self._waiting.extend(zip(repeat(arrival), batches))
        self._start_workers()

    async def close(self, timeout: float) -> None:
        """Begin no further call; running ones have ``timeout`` seconds to end."""
        self._closing = True
        while self._waiting:
            self._results.not_begun(self._waiting.popleft())
        await self._listeners.end(self._tasks, timeout)
        self._ended.take()

    def give_up_late(self, before: float) -> list[Call[H]]:
        """Give up the running calls that began before this time, and return them.

        A thread may end one of them meanwhile: then its messages are consumed twice.
        """
        late = [
            call
            for worker in tuple(self._working)
            if (call := worker.call) is not None
            and worker.began < before
            and not call[0].held.is_dropped
            and id(call) not in self._given_up
        ]
        self._given_up.update((id(call), call) for call in late)
        return late

    def longest_call(self) -> float:
        """Return the seconds of the longest running call; 0: none runs."""
        began = [worker.began for worker in tuple(self._working) if worker.call is not None]
        return self._clock.monotonic() - min(began) if began else 0.0

    def _start_workers(self) -> None:
        """Start a worker if calls wait: one after the other, since a quick listener needs only one.

        Threads: the next when the one before has begun and calls still wait. Tasks: as many as calls wait,
        when the listener of the one before waits for something.
        """
        if self._closing or self._yielding or not self._waiting:
            return
        if not self._newest.has_begun or self._free <= 0:
            return
        worker = self._newest = _Worker()
        self._start(self._work(worker), worker)

    @property
    def _free(self) -> int:
        """Number of workers that may begin: none while tasks are cancelled, because the loop ends."""
        free = self._most - len(self._tasks)
        return 0 if free > 0 and any(task.cancelling() for task in self._tasks.tasks) else free

    def _start(self, work: Coroutine[Any, Any, None], worker: _Worker[H]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            worker.has_begun = True
            self._working.discard(worker)
            call = worker.call
            if call is not None and self._counts(call):  # the worker failed itself
                self._results.again(call)
            if not task.cancelling():
                self._start_workers()

        self._working.add(worker)
        self._tasks.spawn("consume", work).add_done_callback(ended)

    def _start_another(self, probe: _Worker[H]) -> None:
        """After the first step of a task: if calls wait now, its listener waits for something."""
        probe.has_begun = True
        if self._closing or self._yielding:
            return
        for _ in range(min(len(self._waiting), self._free)):
            worker: _Worker[H] = _Worker(has_begun=True)
            self._start(self._work(worker), worker)

    async def _work(self, worker: _Worker[H]) -> None:
        """Make the waiting calls, in turns. A failed call is handled before the next turn."""
        on_thread = self._listeners.on_thread
        self._ended.open(from_threads=on_thread is not None)
        if on_thread is None and not worker.has_begun:
            asyncio.get_running_loop().call_soon(self._start_another, worker)
        while self._waiting and not self._closing:
            if on_thread is None:
                failed = await self._turn(worker, on_thread=False)
            else:
                failed = await on_thread(partial(self._turn_here, worker))
            if failed is not None:
                await self._take_failed(failed)
            elif on_thread is not None:
                self._ended.take()
            elif self._waiting:
                self._yielding += 1
                await asyncio.sleep(0)
                self._yielding -= 1

    def _turn_here(self, worker: _Worker[H]) -> _Failed[H] | None:
        """On a thread of the listeners: take a turn."""
        worker.has_begun = True
        self._ended.put((None, None, 0.0))  # the loop may start the next worker
        return finish(self._turn(worker, on_thread=True))

    async def _turn(self, worker: _Worker[H], *, on_thread: bool) -> _Failed[H] | None:
        """Take waiting calls and make them. On a thread, nothing here suspends.

        Ends when nothing waits, after a while, or with the first call that did not acknowledge everything,
        and returns that call. The others go to the loop as they end.
        """
        waiting, listeners, monotonic = self._waiting, self._listeners, self._clock.monotonic
        ended, came = self._ended, self._ended.came
        now = monotonic()
        ends, has_yielded = now + _LONGEST_RUN, not on_thread
        while now < ends and not self._closing:
            try:
                call = waiting.popleft()
            except IndexError:  # the loop may have more, if only it gets the interpreter
                if has_yielded:
                    break
                has_yielded = True
                let_others_run()
                now = monotonic()
                continue
            has_yielded = not on_thread
            arrival, messages = call
            if arrival.held.is_dropped or now >= arrival.until:
                ended.put((None, call, 0.0))
                continue
            worker.began = now
            worker.call = call
            context = _consume_context(arrival.queue, 0, ACK_ALL, None, True, False)
            if on_thread:
                status = listeners.call_here(arrival.topic, messages, context)
            else:
                status = await listeners.call(arrival.topic, messages, context)
            before, now = now, monotonic()
            worker.call = None
            if status is not _SUCCESS or context.ack_index is not ACK_ALL:
                return _Failed(call, now - before, status, context)
            came.append((arrival, call, now - before))
            if not ended.is_told:
                ended.tell()
        return None

    async def _take_failed(self, failed: _Failed[H]) -> None:
        call, seconds, status, context = failed
        self._ended.take()
        self._listeners.count(call[0].topic, status, count=len(call[1]), seconds=seconds)
        if self._counts(call):
            await self._results.not_all_consumed(call, status, context)

    def _take_ended(self, ended: list[_Ended[H]]) -> None:
        """On the loop: handle what was consumed, arrival by arrival."""
        consumed: dict[Arrival[H], _Consumed] = {}
        for arrival, same in groupby(ended, _arrival_of):  # nearly always its calls follow each other
            _, these, seconds = zip(*same, strict=True)
            if arrival is None:
                for call in filter(None, these):
                    self._results.not_begun(call)
                continue
            found = consumed.setdefault(arrival, _Consumed())
            found.calls += len(these)
            if max(seconds) > LONG_CALL:
                found.long_calls += sum(map(LONG_CALL.__lt__, seconds))
            found.seconds += sum(seconds)
            messages = [*chain.from_iterable(map(_messages_of, these))]
            found.count += len(messages)
            if self._given_up:
                messages = [*chain.from_iterable(map(_messages_of, filter(self._counts, these)))]
            found.messages.extend(messages)
        for arrival, found in consumed.items():
            count, calls = found.count, found.calls
            self._listeners.count(arrival.topic, _SUCCESS, count=count, seconds=found.seconds, calls=calls)
            self._listeners.pace.note(calls, found.long_calls)
            if found.messages:
                self._results.consumed(arrival, found.messages)
        self._start_workers()

    def _counts(self, call: Call[H]) -> bool:
        """Return whether the result of a call counts that has ended now."""
        return self._given_up.pop(id(call), None) is None
