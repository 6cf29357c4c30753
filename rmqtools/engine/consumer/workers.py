"""Calls listeners for waiting messages: coroutines in tasks, functions on threads.

Coroutine listeners are called by up to ``consume_threads`` tasks. Blocking ones are called on as many
threads, which take the waiting messages call by call, without the loop between two calls
(docs/decisions/0029). Results of calls that acknowledge everything are handled together; that of another
call is handled before its worker begins the next one.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import inf
from operator import length_hint
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
from rmqtools.engine.group.process_queue import HeldAnswer
from rmqtools.model.consume import ACK_ALL, ConsumeContext
from rmqtools.model.frozen import maker_of
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.redelivery import listener_batches

_LONGEST_RUN = 0.010  # seconds after which a worker begins no further call and lets waiting work come first

new_context = maker_of(ConsumeContext)

H = TypeVar("H", bound=HeldQueue)
Messages = Sequence[MessageExt]
"""The messages of one listener call."""


@dataclass(slots=True, eq=False)
class Arrival(Generic[H]):
    """Messages of one topic that arrived together, and their listener calls.

    Attributes:
        held: the queue they are counted in.
        topic: their topic, by its plain name.
        queue: the queue in the listeners' context.
        calls: the calls that no worker has taken; workers take from it on several threads.
        answer: their answer in ``held``, if it is pulled.
        until: the monotonic time from which on others may have them, and no call may begin.
        over: in order only: one worker makes all calls, and this is done when it makes no more of them.
    """

    held: H
    topic: str
    queue: MessageQueue
    calls: Iterator[Messages]
    answer: HeldAnswer | None = None
    until: float = inf
    over: "asyncio.Future[None] | None" = None

    def end(self) -> None:
        """On the loop: no further call is made in order."""
        if self.over is not None and not self.over.done():
            self.over.set_result(None)

    def with_call(self, messages: Messages) -> "Arrival[H]":
        """Return these messages as an arrival of their own, with one call."""
        return replace(self, calls=iter([messages]))


def calls_of(messages: Messages, size: int) -> Iterator[Messages]:
    """Return the calls of messages, up to ``size`` a call; safe to take from on several threads."""
    return iter(list(zip(messages) if size == 1 else listener_batches(messages, size)))


Call = tuple[Arrival[H], Messages]
"""A listener call: its arrival and its messages."""


@dataclass(slots=True, eq=False)
class Ended(Generic[H]):
    """Calls of one arrival that one worker has made, and that acknowledged everything.

    The worker adds to it while the loop takes from it: each attribute is written by one of the two only.

    Attributes:
        arrival: their arrival.
        began: when the first call began that the loop has not counted.
        calls: the messages of each call.
        ended: when the last of them ended.
        long_calls: how many were long.
        seen: how many of ``calls`` and ``long_calls`` the loop has counted.
        is_told: it is on its way to the loop; set by the worker, cleared by the loop before it looks.
    """

    arrival: Arrival[H]
    began: float
    calls: list[Messages] = field(default_factory=list)
    ended: float = 0.0
    long_calls: int = 0
    seen: tuple[int, int] = (0, 0)
    is_told: bool = False


class ResultHandler(Protocol[H]):
    """Handler of the results of listener calls. All of it runs on the loop."""

    def consumed(self, arrival: Arrival[H], messages: Messages) -> None:
        """Handle messages of calls that acknowledged all of theirs."""

    async def not_all_consumed(self, call: Call[H], status: ConsumeStatus, context: ConsumeContext) -> None:
        """Handle a call that did not acknowledge everything."""

    def not_begun(self, call: Call[H]) -> None:
        """Handle a call that may not begin any more."""

    def again(self, call: Call[H]) -> None:
        """Handle a call whose worker failed, and not its listener."""


class Failed(NamedTuple, Generic[H]):
    """A call of a blocking listener that did not acknowledge all its messages."""

    call: Call[H]
    seconds: float
    status: ConsumeStatus
    context: ConsumeContext


@dataclass(slots=True, eq=False)
class Worker(Generic[H]):
    """Calls listeners one after the other.

    Attributes:
        has_begun: it has taken up its work.
        task: it calls coroutines; None: it calls functions on a thread.
        began: when the call began, by the monotonic clock; set before ``call``.
        call: what its listener has now.
    """

    has_begun: bool = False
    task: "asyncio.Task[None] | None" = None
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
        self._waiting: deque[Arrival[H]] = deque()
        self._working: set[Worker[H]] = set()
        self._tasks = Background()
        self._newest: Worker[H] = Worker(has_begun=True)
        self._ended: Crossing[Ended[H] | Arrival[H] | Call[H] | None] = Crossing(self._take_ended)
        self._given_up: dict[int, Call[H]] = {}  # by id of messages: their results do not count
        self._yielding = 0  # tasks that only let others run, and will take what waits
        self._closing = False

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, arrival: Arrival[H]) -> None:
        """Call the listener for these messages when a worker is free."""
        self._waiting.append(arrival)
        self._start_workers()

    async def close(self, timeout: float) -> None:
        """Begin no further call; running ones have ``timeout`` seconds to end."""
        self._closing = True
        while self._waiting:
            arrival = self._waiting.popleft()
            for messages in arrival.calls:
                self._results.not_begun((arrival, messages))
            arrival.end()
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
            and call[0].answer is not None  # of a burst: the loop has taken over
            and not call[0].held.is_dropped
            and id(call[1]) not in self._given_up
        ]
        self._given_up.update((id(call[1]), call) for call in late)
        return late

    def enlist(self) -> Worker[H]:
        """Return a worker of someone else, whose calls are looked at like the others."""
        worker: Worker[H] = Worker(has_begun=True)
        self._working.add(worker)
        return worker

    def longest_call(self) -> float:
        """Return the seconds of the longest running call; 0: none runs."""
        began = [worker.began for worker in tuple(self._working) if worker.call is not None]
        return self._clock.monotonic() - min(began) if began else 0.0

    def _start_workers(self) -> None:
        """Start a worker if calls wait: one after the other, since a quick listener needs only one.

        Threads: the next when the one before has begun and calls still wait. Tasks: as many as calls wait,
        when the listener of the one before waits for something.
        """
        if self._closing or self._yielding or not self._newest.has_begun:
            return
        if not self._has_calls() or self._free <= 0:
            return
        worker = self._newest = Worker()
        self._start(self._work(worker), worker)

    def _has_calls(self) -> bool:
        """Return whether calls wait; forget arrivals whose last call is being made."""
        while self._waiting:
            with suppress(IndexError, ValueError):  # a thread was faster
                first = self._waiting[0]
                if length_hint(first.calls):
                    return True
                self._waiting.remove(first)
        return False

    @property
    def _free(self) -> int:
        """Number of workers that may begin: none while tasks are cancelled, because the loop ends."""
        free = self._most - len(self._tasks)
        return 0 if free > 0 and any(task.cancelling() for task in self._tasks.tasks) else free

    def _start(self, work: Coroutine[Any, Any, None], worker: Worker[H]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            worker.has_begun = True
            self._working.discard(worker)
            call = worker.call
            if call is not None and self._counts(call[1]):  # the worker failed itself
                self._results.again(call)
                call[0].end()
            if not task.cancelling():
                self._start_workers()

        self._working.add(worker)
        self._tasks.spawn("consume", work).add_done_callback(ended)

    def _start_another(self, probe: Worker[H]) -> None:
        """After the first step of a task: if its listener waits for something, so may those of all calls."""
        probe.has_begun = True
        if probe.call is None:
            self._start_workers()
            return
        if self._closing or self._yielding:
            return
        waiting = sum(1 if one.over is not None else length_hint(one.calls) for one in self._waiting)
        for _ in range(min(waiting, self._free)):
            worker: Worker[H] = Worker(has_begun=True)
            self._start(self._work(worker), worker)

    async def _work(self, worker: Worker[H]) -> None:
        """Make the waiting calls, in turns. A failed call is handled before the next turn."""
        on_thread = self._listeners.on_thread
        self._ended.open(from_threads=on_thread is not None)
        worker.task = asyncio.current_task() if on_thread is None else None
        if on_thread is None and not worker.has_begun:
            asyncio.get_running_loop().call_soon(self._start_another, worker)
        while self._waiting and not self._closing:
            if on_thread is None:
                failed = await self._turn(worker)
            else:
                failed = await on_thread(partial(self._turn_here, worker))
            if failed is not None:
                await self.take_failed(failed)
            elif on_thread is not None:
                self._ended.take()
            elif self._waiting:
                self._yielding += 1
                await asyncio.sleep(0)
                self._yielding -= 1

    def _turn_here(self, worker: Worker[H]) -> Failed[H] | None:
        """On a thread of the listeners: take a turn."""
        worker.has_begun = True
        self._ended.put(None)  # the loop may start the next worker
        return finish(self._turn(worker))

    async def _turn(self, worker: Worker[H]) -> Failed[H] | None:
        """Make waiting calls. On a thread, nothing here suspends.

        Ends when nothing waits, after a while, or with the first call that did not acknowledge everything,
        and returns that call. The others go to the loop as they end.
        """
        waiting = self._waiting
        monotonic = self._clock.monotonic
        on_thread = worker.task is None
        now = monotonic()
        ends, has_yielded = now + _LONGEST_RUN, not on_thread
        while now < ends and not self._closing:
            if worker.task is not None and worker.task.cancelling():  # a listener may have caught it
                raise asyncio.CancelledError
            try:
                arrival = waiting[0]
            except IndexError:  # the loop may have more, if only it gets the interpreter
                if has_yielded:
                    break
                has_yielded = True
                let_others_run()
            else:
                has_yielded = not on_thread
                failed = await self._take_arrival(worker, arrival, ends)
                if failed is not None:
                    return failed
            now = monotonic()
        return None

    async def _take_arrival(self, worker: Worker[H], arrival: Arrival[H], until: float) -> Failed[H] | None:
        """Make calls of an arrival: in order, no other worker does."""
        if arrival.over is None:
            return await self._make_calls(worker, arrival, until)
        try:
            self._waiting.remove(arrival)
        except ValueError:  # another worker was faster
            return None
        failed = None
        try:
            failed = await self._make_calls(worker, arrival, until)
        finally:
            if failed is None:
                self._ended.put(arrival)
        return failed

    async def _make_calls(self, worker: Worker[H], arrival: Arrival[H], until: float) -> Failed[H] | None:
        """Make calls of an arrival until then, or until one did not acknowledge everything; return that."""
        listeners, monotonic = self._listeners, self._clock.monotonic
        success, is_orderly = listeners.success, listeners.is_orderly
        held = arrival.held
        topic = arrival.topic
        crossing = self._ended
        task = worker.task
        listener = listeners.listener_of(topic)
        now = monotonic()
        ended = Ended(arrival, began=now)
        for messages in arrival.calls:
            if held.is_dropped or not held.is_locked or now >= arrival.until:
                crossing.put((arrival, messages))
                continue
            worker.began = now
            worker.call = arrival, messages
            context = new_context(arrival.queue, 0, ACK_ALL, None, True, is_orderly)
            if task is None:
                status = listeners.call_here(topic, messages, context)
            else:
                try:  # here: a coroutine of its own would cost as much as an empty listener
                    answer = await listener([*messages], context)
                    status = success if answer is None else listeners.checked(answer)
                except (Exception, asyncio.CancelledError) as error:  # a user's callback
                    if task.cancelling():
                        raise
                    status = listeners.failed(messages, error)
            before, now = now, monotonic()
            worker.call = None
            if status is not success or context.ack_index is not ACK_ALL or context.auto_commit is not True:
                return Failed((arrival, messages), now - before, status, context)
            if now - before > LONG_CALL:
                ended.long_calls += 1
            ended.ended = now
            ended.calls.append(messages)
            if not ended.is_told:
                ended.is_told = True
                crossing.put(ended)
            if now >= until or self._closing or (task is not None and task.cancelling()):
                return None
        with suppress(ValueError):  # another worker was faster
            self._waiting.remove(arrival)
        return None

    async def take_failed(self, failed: Failed[H]) -> None:
        """On the loop: handle a call that did not simply succeed."""
        (arrival, messages), seconds, status, context = failed
        self._ended.take()
        self._listeners.count(arrival.topic, status, count=len(messages), seconds=seconds)
        try:
            if self._counts(messages):
                await self._results.not_all_consumed((arrival, messages), status, context)
        finally:
            arrival.end()

    def _take_ended(self, ended: list[Ended[H] | Arrival[H] | Call[H] | None]) -> None:
        """On the loop: handle calls that have ended, or that may not begin."""
        for each in ended:
            if isinstance(each, Ended):
                self.count_ended(each)
            elif isinstance(each, Arrival):
                each.end()
            elif each is not None:
                self._results.not_begun(each)
        self._start_workers()

    def count_ended(self, ended: Ended[H]) -> None:
        """On the loop: handle the calls of a worker that have ended since the last time."""
        ended.is_told = False
        arrival, (seen, seen_long) = ended.arrival, ended.seen
        calls = ended.calls[seen:]
        end = ended.ended
        long_calls = ended.long_calls
        if not calls:
            return
        consumed = [*chain.from_iterable(calls)]
        count, seconds = len(consumed), end - ended.began
        ended.seen, ended.began = (seen + len(calls), long_calls), end
        success = self._listeners.success
        self._listeners.count(arrival.topic, success, count=count, seconds=seconds, calls=len(calls))
        self._listeners.pace.note(len(calls), long_calls - seen_long)
        if self._given_up:
            consumed = [one for call in calls if self._counts(call) for one in call]
        if consumed:
            self._results.consumed(arrival, consumed)

    def _counts(self, messages: Messages) -> bool:
        """Return whether the result of a call counts that has ended now."""
        return self._given_up.pop(id(messages), None) is None
