"""Consumes each queue in order, batch by batch. A failed batch is retried before any later message.

Source of the rules: ConsumeMessageOrderlyService (Java client). Ours: the broker turns a message tried too
often into a dead letter; Java sends it to the dead-letter topic itself, through the retry topic.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.background import Background
from rmqtools.engine.consumer.burst import Burst, Lent
from rmqtools.engine.consumer.crossing import Crossing
from rmqtools.engine.consumer.listeners import LONG_CALL, ConsumeStatus, Listeners
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.consumer.workers import Failed, Worker
from rmqtools.engine.finish import finish
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.process_queue import HeldAnswer, ProcessQueue
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.reconsume import (
    NO_MORE_TRIES,
    OrderlyStep,
    listener_batches,
    listener_count,
    max_reconsume_times,
    orderly_step,
    split_exhausted,
    suspend_seconds,
    tried_again,
)

log = get_logger(__name__)

_LOOK_AGAIN = 1.0  # seconds after which an idle queue is checked in any case
_LONGEST_RUN = 0.010  # seconds after which a run begins no further call, so that other queues get the thread
_RUN_MESSAGES = 256  # at most, that a run begins with


@dataclass(slots=True, eq=False)
class _Run:
    """Messages of one queue that a listener gets, call by call, until a call does not simply commit.

    Attributes:
        topic: the plain topic of all messages.
        is_plain: stored messages have that topic. If not, the run has one call.
        taken: the messages of the first call, as long as it has not ended; they were taken from the queue.
        waiting: the messages of each call that has not begun.
        last: the offset of the last message in ``waiting``, if the queue holds none behind it; else None.
        count: messages of calls that have committed; written where calls are made, as the next two.
        calls: number of these calls.
        seconds: that they took.
        seen: ``count``, ``calls`` and ``seconds`` as the loop has counted them.
        is_told: it is on its way to the loop; set where calls are made, cleared by the loop before it looks.
    """

    held: ProcessQueue
    queue: MessageQueue
    topic: str
    is_plain: bool
    taken: Sequence[MessageExt]
    waiting: deque[list[MessageExt]]
    last: int | None
    count: int = 0
    calls: int = 0
    seconds: float = 0.0
    seen: tuple[int, int, float] = (0, 0, 0.0)
    is_told: bool = False


class _Ended(NamedTuple):
    """The call that ended a run: it did not simply commit."""

    messages: list[MessageExt]
    topic: str
    status: ConsumeStatus
    context: ConsumeContext
    seconds: float


class OrderlyConsumption:
    """Hands fetched messages to listeners, queue by queue.

    A task, or a thread of blocking listeners, takes several messages of a queue and calls the listener for
    each, and for those that come meanwhile, until a call does not commit (docs/decisions/0029).
    """

    def __init__(
        self, member: Member, config: PushConsumerConfig, listeners: Listeners, send_back: SendBack
    ) -> None:
        self._names = member.names
        self._held = member.held
        self._offsets = member.offsets
        self._clock = member.client.clock
        self._is_broadcasting = member.is_broadcasting
        self._config = config
        self._listeners = listeners
        self._send_back = send_back
        self._free = asyncio.Semaphore(config.consume_threads)
        self._tasks = Background()
        self._runs: dict[ProcessQueue, _Run] = {}  # that listeners have now
        self._committed: Crossing[_Run] = Crossing(self._take_committed)
        self._closing = asyncio.Event()
        self._loans: dict[ProcessQueue, Lent] = {}  # that no queue's task has taken up
        self._pauses: dict[ProcessQueue, float] = {}  # seconds, after a call on a thread
        self._burst = Burst(
            member.client,
            listeners,
            self,
            worker=Worker(),
            call_size=config.consume_message_batch_max_size,
        )
        member.held.on_leave(self._burst.note_offset)

    def take(self, held: ProcessQueue, answer: HeldAnswer) -> None:
        """Let the run that a listener has now go on with them; else the queue's own task takes them."""
        run, messages = self._runs.get(held), answer.messages
        if run is None or run.last is None:
            return
        run.last = messages[-1].queue_offset
        run.waiting.extend(self._batches(held, messages))

    def may_lend(self) -> bool:
        """Return whether a queue may be lent to a listener's thread."""
        return self._listeners.may_pull and self._burst.has_room

    def lend(self, lent: Lent) -> None:
        """Let a listener's thread pull a queue, whose messages are all consumed."""
        self._loans[lent.held] = lent
        lent.held.wake()

    def until(self, held: ProcessQueue) -> float:
        """See :class:`Lane`."""
        return inf if self._is_broadcasting else held.lock_ends

    def passed(self, held: ProcessQueue, offset: int) -> None:
        """See :class:`Lane`."""
        if self._held.holds(held):
            self._offsets.update(held.queue, offset)

    def take_up(self, lent: Lent) -> bool:
        """See :class:`Lane`. Nobody else may have messages of the queue, so :meth:`left` does all."""
        return False

    async def left(self, lent: Lent, failed: Failed[ProcessQueue] | None) -> None:
        """See :class:`Lane`."""
        held, part = lent.held, lent.part
        assert part is not None
        held.put(lent.messages)
        if part.calls:
            count = sum(map(len, part.calls))
            self._count(lent.topic, count=count, calls=len(part.calls), seconds=part.ended - part.began)
            held.consume(count)
            self._commit(held)
        if failed is not None:
            messages = failed.call[1]
            self._listeners.count(lent.topic, failed.status, count=len(messages), seconds=failed.seconds)
            self._pauses[held] = await self._handle(
                held, held.take(len(messages)), failed.status, failed.context
            )

    @property
    def running(self) -> int:
        """Number of queues that are consumed now."""
        return len(self._tasks)

    def work_on(self, held: ProcessQueue) -> None:
        """Consume a queue until it is dropped."""
        self._tasks.spawn_loop(f"consume {held.queue}", lambda: self._consume_forever(held))

    async def close(self, timeout: float) -> None:
        """Start no further listener calls; running ones have ``timeout`` seconds to end."""
        self._closing.set()
        self._burst.close()
        self._held.wake()
        await asyncio.gather(
            self._listeners.end(self._tasks, timeout), self._listeners.end(self._burst.tasks, timeout)
        )

    async def watch_timeouts_forever(self) -> None:
        """Do nothing: an orderly queue waits for its listener without limit."""

    async def _consume_forever(self, held: ProcessQueue) -> None:
        while not held.is_dropped and not self._closing.is_set():
            if (lent := self._loans.pop(held, None)) is not None:
                suspend = await self._serve(lent)
            elif not self._is_mine(held) or not held.has_next:
                await held.changed(_LOOK_AGAIN)
                continue
            else:
                async with self._free, held.consuming:
                    suspend = await self._consume(held)
            if suspend:
                await self._suspend(held, suspend)

    async def _serve(self, loan: Lent) -> float:
        """Let a thread pull a queue and call its listener; return the seconds to pause afterwards.

        A release of the queue waits for this. The loop pulls the queue again when no call of it runs.
        """
        held = loan.held
        lent = replace(loan, returned=asyncio.get_running_loop().create_future())
        try:
            async with held.consuming:
                self._burst.lend(lent)
                await lent.returned
        finally:
            loan.is_unfit, loan.moved = lent.is_unfit, lent.moved
            if not loan.returned.done():
                loan.returned.set_result(None)
        return self._pauses.pop(held, 0.0)

    def _is_mine(self, held: ProcessQueue) -> bool:
        """Return whether this member alone may consume the queue."""
        return self._is_broadcasting or (held.is_locked and not held.is_lock_expired)

    async def _consume(self, held: ProcessQueue) -> float:
        """Give the listener the next batch; return the seconds to pause before the following one."""
        if held.is_dropped or self._closing.is_set() or not self._is_mine(held):
            return 0.0
        taken = held.take(self._batch_size(held))
        if not taken:
            return 0.0
        ended = await self._call(held, taken)
        return 0.0 if ended is None else await self._handle(held, ended.messages, ended.status, ended.context)

    async def _handle(
        self, held: ProcessQueue, taken: Sequence[MessageExt], status: ConsumeStatus, context: ConsumeContext
    ) -> float:
        """Handle a call that did not simply succeed; return the seconds to pause afterwards."""
        try:
            assert isinstance(status, ConsumeOrderlyStatus)
            return await self._handle_status(held, taken, status, context)
        except Exception as error:  # a listener's context may hold any value: the queue continues
            log.error("consume_failed", queue=str(held.queue), reason=repr(error), exc_info=error)
            held.put_back(taken)
            return self._config.suspend_current_queue_time

    async def _call(self, held: ProcessQueue, taken: list[MessageExt]) -> _Ended | None:
        """Have the listener called for ``taken``, and for what follows while calls commit.

        Returns the call that did not simply succeed, its messages taken; None: all that began did.
        """
        run = self._runs[held] = self._begin(held, taken)
        on_thread = self._listeners.on_thread
        self._committed.open(from_threads=on_thread is not None)
        try:
            if on_thread is None:
                ended = await self._run(run, on_thread=False)
                await asyncio.sleep(0)  # let others run
            else:
                ended = await on_thread(lambda: finish(self._run(run, on_thread=True)))
        finally:
            del self._runs[held]
        self._committed.take()
        if ended is None:
            held.put_back(run.taken)  # no call has begun
            return None
        self._listeners.count(ended.topic, ended.status, count=len(ended.messages), seconds=ended.seconds)
        held.take(len(ended.messages) - self._end_first_call(run))
        return ended

    def _begin(self, held: ProcessQueue, taken: list[MessageExt]) -> _Run:
        queue, waiting = self._names.plain_queue(held.queue), deque([taken])
        topic = self._names.plain_topic(held.queue.topic)
        if topic != held.queue.topic or topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            topic = self._names.plain_message(taken[0]).topic
            return _Run(held, queue, topic, False, taken, waiting, None)
        following = held.first(max(_RUN_MESSAGES - len(taken), 0))
        last = [*taken, *following][-1].queue_offset
        waiting.extend(self._batches(held, following))
        return _Run(held, queue, topic, True, taken, waiting, last if last == held.max_offset else None)

    def _batches(self, held: ProcessQueue, messages: Sequence[MessageExt]) -> Iterable[list[MessageExt]]:
        """Return the messages of each listener call."""
        size = self._largest_batch(held)
        return [[one] for one in messages] if size == 1 else map(list, listener_batches(messages, size))

    async def _run(self, run: _Run, *, on_thread: bool) -> _Ended | None:
        """Call the listener for the run's messages, in order. On a thread, nothing here suspends.

        Ends before the first call that may not begin, and returns the first that did not simply succeed.
        """
        held, waiting, monotonic = run.held, run.waiting, self._clock.monotonic
        listeners, committed, topic = self._listeners, self._committed, run.topic
        began = now = monotonic()
        until = inf if self._is_broadcasting else held.lock_ends
        while waiting:  # only this takes from it
            called = waiting.popleft()
            if held.is_dropped or self._closing.is_set() or now - began >= _LONGEST_RUN:
                return None
            if now > until or not (held.is_locked or self._is_broadcasting):
                return None
            context = ConsumeContext(run.queue, is_orderly=True)
            messages = called if run.is_plain else [self._names.plain_message(one) for one in called]
            if on_thread:
                status = listeners.call_here(topic, messages, context)
            else:
                status = await listeners.call(topic, messages, context)
            before, now = now, monotonic()
            if status is not ConsumeOrderlyStatus.SUCCESS or context.auto_commit is not True:
                return _Ended(called, topic, status, context, now - before)
            run.calls += 1
            run.seconds += now - before
            run.count += len(called)
            if not run.is_told:
                run.is_told = True
                committed.put(run)
        return None

    def _take_committed(self, runs: list[_Run]) -> None:
        """On the loop: commit what listeners have consumed, run by run."""
        for run in runs:
            run.is_told = False
            now, (count, calls, seconds) = (run.count, run.calls, run.seconds), run.seen
            if not (fresh := now[0] - count):
                continue
            run.seen = now
            self._count(run.topic, count=fresh, calls=now[1] - calls, seconds=now[2] - seconds)
            run.held.consume(fresh - self._end_first_call(run))
            self._commit(run.held)

    def _count(self, topic: str, *, count: int, calls: int, seconds: float) -> None:
        """Count calls that simply succeeded."""
        self._listeners.count(topic, ConsumeOrderlyStatus.SUCCESS, count=count, seconds=seconds, calls=calls)
        self._listeners.pace.note(calls, calls if seconds > calls * LONG_CALL else 0)

    def _end_first_call(self, run: _Run) -> int:
        """Return how many messages of the first call, which has ended, are taken from their queue already."""
        count, run.taken = len(run.taken), ()
        return count

    def _batch_size(self, held: ProcessQueue) -> int:
        """Messages of the next listener call."""
        size = self._largest_batch(held)
        return 1 if size == 1 else listener_count(held.first(size))

    def _largest_batch(self, held: ProcessQueue) -> int:
        """Messages per listener call. For a retry topic, which holds messages of several topics: 1."""
        is_retry = held.queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        return 1 if is_retry else self._config.consume_message_batch_max_size

    async def _handle_status(
        self,
        held: ProcessQueue,
        taken: Sequence[MessageExt],
        status: ConsumeOrderlyStatus,
        context: ConsumeContext,
    ) -> float:
        step = orderly_step(status, auto_commit=context.auto_commit)
        default = self._config.suspend_current_queue_time
        pause = suspend_seconds(context.suspend_current_queue_time, default)
        if step is OrderlyStep.RETRY:
            again, sent = await self._tried_too_often(held, taken)
            if again:
                held.commit_some(sent)
                held.put_back(sorted(again, key=lambda message: message.queue_offset))
                return pause
            step = OrderlyStep.COMMIT if context.auto_commit else OrderlyStep.HOLD
        if step is OrderlyStep.ROLLBACK:
            held.rollback()
            return pause
        if step is OrderlyStep.COMMIT:
            self._commit(held)
        return 0.0

    def _commit(self, held: ProcessQueue) -> None:
        offset = held.commit()
        if offset >= 0 and self._held.holds(held):  # also if a release waits for this listener
            self._offsets.update(held.queue, offset)

    async def _tried_too_often(
        self, held: ProcessQueue, messages: Sequence[MessageExt]
    ) -> tuple[Sequence[MessageExt], Sequence[MessageExt]]:
        """Send messages tried too often to the dead letters; return those to retry, and those sent."""
        again, exhausted = split_exhausted(messages, self._max_times)
        sent = await asyncio.gather(*(self._end(one, held) for one in exhausted))
        kept = [tried_again(one) for one, done in zip(exhausted, sent, strict=True) if not done]
        return [*again, *kept], [one for one, done in zip(exhausted, sent, strict=True) if done]

    async def _end(self, message: MessageExt, held: ProcessQueue) -> bool:
        """Make a message a dead letter (broadcasting: drop a corrupt one); return whether that succeeded."""
        if self._is_broadcasting and message.body_error is not None:
            log.warning("message_dropped_after_failure", reason=str(message.body_error))
            return True
        return await self._send_back.send(self._names.plain_message(message), NO_MORE_TRIES, queue=held.queue)

    @property
    def _max_times(self) -> int:
        return max_reconsume_times(self._config.max_reconsume_times, orderly=True)

    async def _suspend(self, held: ProcessQueue, seconds: float) -> None:
        deadline = self._clock.monotonic() + seconds
        while not held.is_dropped and not self._closing.is_set():
            if (left := deadline - self._clock.monotonic()) <= 0:
                return
            await held.changed(left)
