"""Consumes each queue in order, batch by batch. A failed batch is retried before any later message.

Source of the rules: ConsumeMessageOrderlyService (Java client). Ours: the broker turns a message tried too
often into a dead letter; Java sends it to the dead-letter topic itself, through the retry topic.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.background import Background
from rmqtools.engine.consumer.burst import Burst
from rmqtools.engine.consumer.burst_sources import PullSource
from rmqtools.engine.consumer.listeners import ConsumeStatus, Listeners
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.consumer.workers import Arrival, Call, Workers, calls_of
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.process_queue import HeldAnswer, ProcessQueue
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.policy.redelivery import (
    NO_MORE_TRIES,
    OrderlyStep,
    max_reconsume_times,
    orderly_step,
    split_exhausted,
    suspend_seconds,
    tried_again,
)

log = get_logger(__name__)

_LOOK_AGAIN = 1.0  # seconds after which an idle queue is checked in any case
_RUN_MESSAGES = 256  # at most, that a worker gets at once


class OrderlyConsumption:
    """Hands fetched messages to listeners, queue by queue.

    Each queue has a task. It gives several messages to a worker, which calls the listener for each until a
    call does not simply commit, and waits until that is settled.
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
        self._send_back = send_back
        self._workers: Workers[ProcessQueue] = Workers(
            self._clock, listeners, self, most=config.consume_threads
        )
        member.longest_call = self._workers.longest_call
        self._tasks = Background()  # one for each queue
        self._closing = asyncio.Event()
        self._sources: dict[ProcessQueue, PullSource] = {}  # that no queue's task has taken up
        self._pauses: dict[ProcessQueue, float] = {}  # seconds, after a call on a thread
        self._burst = Burst(
            member.client, listeners, self._workers, arrange=self._arrange, take_up=self._take_up
        )
        member.offsets.before_persist(self._burst.note_queue)
        self.may_burst = self._burst.may_burst

    def consume(self, held: ProcessQueue, answer: HeldAnswer) -> None:
        """Do nothing: the queue's own task takes them."""

    def add(self, source: PullSource) -> None:
        """Let a listener's thread pull a queue, whose messages are all consumed."""
        self._sources[source.held] = source
        source.held.wake()

    def _arrange(self, held: ProcessQueue, messages: Sequence[MessageExt]) -> list[Arrival[ProcessQueue]]:
        """See :class:`Burst`. The names of a burst are plain."""
        calls = calls_of(messages, self._config.consume_message_batch_max_size)
        return [Arrival(held, held.queue.topic, held.queue, calls, until=self._until(held))]

    def _until(self, held: ProcessQueue) -> float:
        """Return the monotonic time from which on no call of a queue may begin."""
        return inf if self._is_broadcasting else held.lock_ends

    def _take_up(self, source: PullSource, in_call: bool) -> bool:
        """See :class:`Burst`. Nobody else may have messages of the queue while a call of it runs."""
        if not in_call:
            source.held.put(source.messages)
            source.held.next_offset = source.after
        return not in_call

    def consumed(self, arrival: Arrival[ProcessQueue], messages: Sequence[MessageExt]) -> None:
        """See :class:`ResultHandler`."""
        arrival.held.consume(len(messages))
        self._commit(arrival.held)

    async def not_all_consumed(
        self, call: Call[ProcessQueue], status: ConsumeStatus, context: ConsumeContext
    ) -> None:
        """See :class:`ResultHandler`."""
        held = call[0].held
        taken = held.take(len(call[1]))
        try:
            assert isinstance(status, ConsumeOrderlyStatus)
            self._pauses[held] = await self._handle_status(held, taken, status, context)
        except Exception as error:  # a listener's context may hold any value: the queue continues
            log.error("consume_failed", queue=str(held.queue), reason=repr(error), exc_info=error)
            held.put_back(taken)
            self._pauses[held] = self._config.suspend_current_queue_time

    def not_begun(self, call: Call[ProcessQueue]) -> None:
        """Do nothing: the queue holds the messages until they are consumed."""

    def again(self, call: Call[ProcessQueue]) -> None:
        """Do nothing, as above: the queue's task goes on with them."""

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
        self._held.wake()
        await asyncio.gather(self._workers.close(timeout), self._burst.close(timeout))
        await self._tasks.stop()

    async def watch_timeouts_forever(self) -> None:
        """Do nothing: an orderly queue waits for its listener without limit."""

    async def _consume_forever(self, held: ProcessQueue) -> None:
        while not held.is_dropped and not self._closing.is_set():
            if (source := self._sources.pop(held, None)) is not None:
                await self._serve(source)
            elif not self._is_mine(held) or not held.has_next:
                await held.changed(_LOOK_AGAIN)
                continue
            else:
                async with held.consuming:
                    await self._consume(held)
            suspend = self._pauses.pop(held, 0.0)
            if suspend:
                await self._suspend(held, suspend)
        if (source := self._sources.pop(held, None)) is not None:  # it came just before the queue was dropped
            _return(source)

    async def _serve(self, given: PullSource) -> None:
        """Pull a queue and call its listener on the thread of a burst, until the burst ends.

        A release of the queue waits for this. The loop pulls the queue again when no call of it runs.
        """
        held = given.held
        source = replace(given, returned=asyncio.get_running_loop().create_future())
        try:
            async with held.consuming:
                self._burst.add(source)
                await source.returned
        finally:
            given.is_unfit = source.is_unfit
            _return(given)

    def _is_mine(self, held: ProcessQueue) -> bool:
        """Return whether this member alone may consume the queue."""
        return self._is_broadcasting or (held.is_locked and not held.is_lock_expired)

    async def _consume(self, held: ProcessQueue) -> None:
        """Give the next messages to a worker, and wait until it calls the listener for no more of them."""
        if held.is_dropped or self._closing.is_set() or not self._is_mine(held):
            return
        if (arrival := self._arrival(held)) is not None:
            self._workers.add(arrival)
            assert arrival.over is not None
            await arrival.over

    def _arrival(self, held: ProcessQueue) -> Arrival[ProcessQueue] | None:
        """Return the next calls of a queue; of a retry topic, one: its messages belong to several topics."""
        size, names = self._largest_batch(held), self._names
        topic = names.plain_topic(held.queue.topic)
        is_plain = topic == held.queue.topic and not topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        messages = held.first(max(size, _RUN_MESSAGES) if is_plain else size)
        if not messages:
            return None
        calls = calls_of(messages, size)
        if not is_plain:
            calls = iter([list(map(names.plain_message, next(calls)))])
            topic = names.plain_message(messages[0]).topic
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = names.plain_queue(held.queue)
        return Arrival(held, topic, queue, calls, until=self._until(held), over=over)

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


def _return(source: PullSource) -> None:
    """Let the puller's task go on, unless it was cancelled."""
    if not source.returned.done():
        source.returned.set_result(None)
