"""Consuming in order: one batch of a queue after the other, a failed one again before anything behind it.

Source of the rules: ConsumeMessageOrderlyService (Java client). Ours: a message tried too often is sent to
the dead-letter topic by its broker; Java sends it there itself, through the retry topic.
"""

import asyncio
from collections.abc import Sequence

from rmqtools.config_consumer import PushConsumerConfig
from rmqtools.engine.consumer import ConsumerCore
from rmqtools.engine.listeners import Listeners, end_listeners
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.send_back import SendBack
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.policy.reconsume import (
    NO_MORE_TRIES,
    OrderlyStep,
    max_reconsume_times,
    orderly_step,
    split_exhausted,
    suspend_seconds,
    tried_again,
)

log = get_logger(__name__)

_LOOK_AGAIN = 1.0  # seconds after which a queue with nothing to do is looked at in any case


class OrderlyConsumption:
    """Hands fetched messages to listeners, queue by queue."""

    def __init__(
        self, owner: ConsumerCore, config: PushConsumerConfig, listeners: Listeners, send_back: SendBack
    ) -> None:
        self._owner = owner
        self._config = config
        self._listeners = listeners
        self._send_back = send_back
        self._free = asyncio.Semaphore(config.consume_threads)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    def take(self, held: ProcessQueue, messages: list[MessageExt]) -> None:
        """Nothing: the queue's own task looks into it."""

    def work_on(self, held: ProcessQueue) -> None:
        """Consume a queue until it is dropped."""
        task = asyncio.create_task(self._consume_forever(held), name=f"consume {held.queue}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def close(self, timeout: float) -> None:
        """Start no listener any more; those under way have ``timeout`` seconds to end."""
        self._closing.set()
        for held in self._owner.table.values():
            held.wake()
        await end_listeners(self._tasks, timeout, group=self._owner.group)

    async def watch_timeouts_forever(self) -> None:
        """Nothing: a queue in order waits for its listener, however long that takes."""

    async def _consume_forever(self, held: ProcessQueue) -> None:
        while not held.is_dropped and not self._closing.is_set():
            if not self._is_mine(held) or not held.has_next:
                await held.changed(_LOOK_AGAIN)
                continue
            async with self._free, held.consuming:
                suspend = await self._consume_safely(held)
            if suspend:
                await self._suspend(held, suspend)

    async def _consume_safely(self, held: ProcessQueue) -> float:
        try:
            return await self._consume(held)
        except Exception as error:  # a listener's context may hold anything: the queue must go on
            log.error("consume_failed", queue=str(held.queue), reason=repr(error), exc_info=error)
            held.rollback()
            return self._config.suspend_current_queue_time

    def _is_mine(self, held: ProcessQueue) -> bool:
        """Whether no other member can be consuming the queue."""
        return self._owner.is_broadcasting or (held.is_locked and not held.is_lock_expired)

    async def _consume(self, held: ProcessQueue) -> float:
        """Give the listener the next batch; the seconds until the queue goes on."""
        if held.is_dropped or self._closing.is_set() or not self._is_mine(held):
            return 0.0
        is_retry = held.queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)  # has messages of several topics
        taken = held.take(1 if is_retry else self._config.consume_message_batch_max_size)
        if not taken:
            return 0.0
        context = ConsumeContext(self._owner.plain_queue(held.queue))
        messages = [self._owner.plain_message(message) for message in taken]
        status = await self._listeners.call(messages, context)
        assert isinstance(status, ConsumeOrderlyStatus)
        return await self._settle(held, taken, status, context)

    async def _settle(
        self,
        held: ProcessQueue,
        taken: Sequence[MessageExt],
        status: ConsumeOrderlyStatus,
        context: ConsumeContext,
    ) -> float:
        step = orderly_step(status, auto_commit=context.auto_commit)
        again: Sequence[MessageExt] = ()
        sent: Sequence[MessageExt] = ()
        if step is OrderlyStep.RETRY:
            again, sent = await self._tried_too_often(held, taken)
            done = OrderlyStep.COMMIT if context.auto_commit else OrderlyStep.HOLD
            step = OrderlyStep.ROLLBACK if again else done
        if step is OrderlyStep.ROLLBACK:
            held.rollback(again)
            held.remove(sent)
            default = self._config.suspend_current_queue_time
            return suspend_seconds(context.suspend_current_queue_time, default)
        if step is OrderlyStep.COMMIT:
            offset = held.commit()
            if offset >= 0 and not held.is_dropped:
                self._owner.offsets.update(held.queue, offset)
        return 0.0

    async def _tried_too_often(
        self, held: ProcessQueue, messages: Sequence[MessageExt]
    ) -> tuple[Sequence[MessageExt], Sequence[MessageExt]]:
        """Send what was tried too often to the dead letters; what has to be tried again, and what is sent."""
        again, exhausted = split_exhausted(messages, self._max_times)
        sent = await asyncio.gather(
            *(
                self._send_back.send(self._owner.plain_message(one), NO_MORE_TRIES, queue=held.queue)
                for one in exhausted
            )
        )
        kept = [tried_again(one) for one, done in zip(exhausted, sent, strict=True) if not done]
        return [*again, *kept], [one for one, done in zip(exhausted, sent, strict=True) if done]

    @property
    def _max_times(self) -> int:
        return max_reconsume_times(self._config.max_reconsume_times, orderly=True)

    async def _suspend(self, held: ProcessQueue, seconds: float) -> None:
        clock = self._owner.client.clock
        deadline = clock.monotonic() + seconds
        while not held.is_dropped and not self._closing.is_set():
            if (left := deadline - clock.monotonic()) <= 0:
                return
            await held.changed(left)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("consume_task_failed", task=task.get_name(), reason=repr(error), exc_info=error)
