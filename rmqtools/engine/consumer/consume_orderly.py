"""Consumes each queue in order, batch by batch. A failed batch is retried before any later message.

Source of the rules: ConsumeMessageOrderlyService (Java client). Ours: the broker turns a message tried too
often into a dead letter; Java sends it to the dead-letter topic itself, through the retry topic.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.background import Background
from rmqtools.engine.consumer.crossing import Crossing
from rmqtools.engine.consumer.listeners import ConsumeStatus, Listeners, OnThread
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
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
_LONGEST_RUN = 0.010  # seconds after which a thread begins no further call, so that other queues get it
_RUN_MESSAGES = 64  # at most, that a thread takes at once


@dataclass(slots=True, eq=False)
class _Run:
    """Messages of one queue that a thread gives to a blocking listener, call by call.

    ``taken``: the messages of the first call, as long as it has not ended; they were taken from the queue.
    """

    held: ProcessQueue
    taken: Sequence[MessageExt]
    calls: list[list[MessageExt]]


class _Ended(NamedTuple):
    """A listener call of a run that has ended."""

    run: _Run
    messages: list[MessageExt]
    topic: str
    status: ConsumeStatus
    context: ConsumeContext
    seconds: float


class OrderlyConsumption:
    """Hands fetched messages to listeners, queue by queue.

    A thread of blocking listeners takes several messages of a queue and calls the listener for each, until a
    call does not commit.
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
        self._committed_on_threads: Crossing[_Ended] = Crossing(self._take_committed)
        self._closing = asyncio.Event()

    def take(self, held: ProcessQueue, messages: list[MessageExt]) -> None:
        """Do nothing: the queue's own task takes its messages."""

    def work_on(self, held: ProcessQueue) -> None:
        """Consume a queue until it is dropped."""
        self._tasks.spawn_loop(f"consume {held.queue}", lambda: self._consume_forever(held))

    async def close(self, timeout: float) -> None:
        """Start no further listener calls; running ones have ``timeout`` seconds to end."""
        self._closing.set()
        self._held.wake()
        await self._listeners.end(self._tasks, timeout)

    async def watch_timeouts_forever(self) -> None:
        """Do nothing: an orderly queue waits for its listener without limit."""

    async def _consume_forever(self, held: ProcessQueue) -> None:
        while not held.is_dropped and not self._closing.is_set():
            if not self._is_mine(held) or not held.has_next:
                await held.changed(_LOOK_AGAIN)
                continue
            async with self._free, held.consuming:
                suspend = await self._consume(held)
            if suspend:
                await self._suspend(held, suspend)

    def _is_mine(self, held: ProcessQueue) -> bool:
        """Whether this member alone may consume the queue."""
        return self._is_broadcasting or (held.is_locked and not held.is_lock_expired)

    async def _consume(self, held: ProcessQueue) -> float:
        """Give the listener the next batch; return the seconds to pause before the following one."""
        if held.is_dropped or self._closing.is_set() or not self._is_mine(held):
            return 0.0
        taken = held.take(self._batch_size(held))
        if not taken:
            return 0.0
        try:
            if (on_thread := self._listeners.on_thread) is not None:
                ended = await self._call_on(on_thread, held, taken)
                if ended is None:
                    return 0.0
                taken, status, context = ended.messages, ended.status, ended.context
            else:
                context = ConsumeContext(self._names.plain_queue(held.queue), is_orderly=True)
                messages = [self._names.plain_message(message) for message in taken]
                status = await self._listeners.call(messages, context)
            assert isinstance(status, ConsumeOrderlyStatus)
            return await self._settle(held, taken, status, context)
        except Exception as error:  # a listener's context may hold any value: the queue continues
            log.error("consume_failed", queue=str(held.queue), reason=repr(error), exc_info=error)
            held.put_back(taken)
            return self._config.suspend_current_queue_time

    async def _call_on(
        self, on_thread: OnThread, held: ProcessQueue, taken: list[MessageExt]
    ) -> _Ended | None:
        """Have a thread call the listener for ``taken``, and for what follows while calls commit.

        Returns the call that did not simply succeed, its messages taken; None: all that began did.
        """
        following = held.first(max(_RUN_MESSAGES - len(taken), 0))
        run = _Run(held, taken, [taken, *map(list, listener_batches(following, self._largest_batch(held)))])
        self._committed_on_threads.open()
        ended: _Ended | None = await on_thread(partial(self._run, run))
        self._committed_on_threads.take()
        if ended is None:
            held.put_back(run.taken)  # no call has begun
            return None
        self._listeners.count(ended.topic, ended.status, count=len(ended.messages), seconds=ended.seconds)
        self._take_called(ended)
        return ended

    def _run(self, run: _Run) -> _Ended | None:
        """On a thread of the listeners: call the listener for the run's messages, in order.

        Ends before the first call that may not begin, and returns the first that did not simply succeed.
        """
        held, queue = run.held, self._names.plain_queue(run.held.queue)
        began = now = self._clock.monotonic()
        for called in run.calls:
            if held.is_dropped or self._closing.is_set() or not self._is_mine(held):
                return None
            if now - began >= _LONGEST_RUN:
                return None
            context = ConsumeContext(queue, is_orderly=True)
            messages = [self._names.plain_message(message) for message in called]
            topic = messages[0].topic
            status = self._listeners.call_here(messages, context)
            before, now = now, self._clock.monotonic()
            ended = _Ended(run, called, topic, status, context, now - before)
            if status is not ConsumeOrderlyStatus.SUCCESS or context.auto_commit is not True:
                return ended
            self._committed_on_threads.put(ended)
        return None

    def _take_committed(self, calls: list[_Ended]) -> None:
        """On the loop: commit what threads have consumed, queue by queue."""
        counted: defaultdict[str, list[_Ended]] = defaultdict(list)
        for call in calls:
            counted[call.topic].append(call)
            self._take_called(call)
        for topic, same in counted.items():
            count, seconds = sum(len(one.messages) for one in same), sum(one.seconds for one in same)
            self._listeners.count(topic, same[0].status, count=count, seconds=seconds, calls=len(same))
        for held in {call.run.held: None for call in calls}:
            self._commit(held)

    def _take_called(self, ended: _Ended) -> None:
        """Take the messages of a call from their queue; those of a run's first call are taken already."""
        run = ended.run
        if run.taken:
            run.taken = ()
        else:
            run.held.take(len(ended.messages))

    def _batch_size(self, held: ProcessQueue) -> int:
        """Messages of the next listener call."""
        size = self._largest_batch(held)
        return 1 if size == 1 else listener_count(held.first(size))

    def _largest_batch(self, held: ProcessQueue) -> int:
        """Messages per listener call. For a retry topic, which holds messages of several topics: 1."""
        is_retry = held.queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        return 1 if is_retry else self._config.consume_message_batch_max_size

    async def _settle(
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
                held.put_back(sorted([*again, *sent], key=lambda message: message.queue_offset))
                held.remove(sent)
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
