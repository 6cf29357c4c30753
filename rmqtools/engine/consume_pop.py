"""Consuming popped messages (5.x): each is acknowledged by itself, a failed one is hidden for longer.

Source of the rules: ConsumeMessagePopConcurrentlyService (Java client). Ours: what a listener has finished is
acknowledged also where the queue was given up meanwhile (Java lets it come again), the invisible time counts
from when a message arrives (Java compares the broker's clock with its own), and the delay level -1 makes a
dead letter.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rmqtools.clock import Clock
from rmqtools.config_consumer import PushConsumerConfig
from rmqtools.engine.acknowledge import Acknowledger
from rmqtools.engine.listeners import Listeners, end_listeners
from rmqtools.engine.pop_process_queue import PopProcessQueue
from rmqtools.engine.send_back import SendBack
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.pop_delay import exhausted_delay, pop_delay
from rmqtools.policy.reconsume import NO_MORE_TRIES, failed_messages, max_reconsume_times
from rmqtools.protocol.pop_extra_info import parse_extra_info

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Messages of one queue that a listener gets at once; ``deadline`` (monotonic): others get them then."""

    held: PopProcessQueue
    messages: Sequence[MessageExt]
    deadline: float


class PopConsumption:
    """Hands popped messages to listeners."""

    def __init__(
        self,
        config: PushConsumerConfig,
        listeners: Listeners,
        *,
        acknowledger: Acknowledger,
        send_back: SendBack,
        clock: Clock,
    ) -> None:
        self._config = config
        self._listeners = listeners
        self._acknowledger = acknowledger
        self._send_back = send_back
        self._clock = clock
        self._max_times = max_reconsume_times(config.max_reconsume_times)
        self._free = asyncio.Semaphore(config.consume_threads)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    def take(self, held: PopProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Have messages consumed as soon as there is a listener free."""
        size, now = self._config.consume_message_batch_max_size, self._clock.monotonic()
        for _, group in groupby(messages, key=lambda message: message.queue_id):
            of_queue = list(group)
            for start in range(0, len(of_queue), size):
                part = of_queue[start : start + size]
                task = asyncio.create_task(self._consume(_Chunk(held, part, now + _hidden_for(part[0]))))
                self._tasks.add(task)
                task.add_done_callback(self._ended)

    async def close(self, timeout: float) -> None:
        """Start no listener any more; those under way have ``timeout`` seconds to end."""
        self._closing = True
        await end_listeners(self._tasks, timeout, group=self._config.group)

    async def _consume(self, chunk: _Chunk) -> None:
        try:
            async with self._free:
                if self._closing or chunk.held.is_dropped or self._is_visible(chunk):
                    return  # it comes again, to whoever pops it then
                first = chunk.messages[0]
                queue = MessageQueue(first.topic, first.broker_name, first.queue_id)
                context = ConsumeContext(queue)
                status = await self._listeners.call(chunk.messages, context)
            if self._is_visible(chunk):
                log.warning("listener_outlasted_invisible_time", queue=str(queue), count=len(chunk.messages))
                return
            assert isinstance(status, ConsumeConcurrentlyStatus)
            await self._settle(chunk, status, context)
        finally:
            chunk.held.settled(len(chunk.messages))

    async def _settle(
        self, chunk: _Chunk, status: ConsumeConcurrentlyStatus, context: ConsumeContext
    ) -> None:
        failed = failed_messages(chunk.messages, status, context.ack_index)
        consumed = chunk.messages[: len(chunk.messages) - len(failed)]
        told: list[Awaitable[object]] = [self._acknowledger.acknowledge(message) for message in consumed]
        level = context.delay_level_when_next_consume
        told += [self._try_again(message, level, chunk.held.queue) for message in failed]
        await asyncio.gather(*told)

    async def _try_again(self, message: MessageExt, delay_level: int, queue: MessageQueue) -> None:
        if delay_level < 0:
            if await self._send_back.send(message, NO_MORE_TRIES, queue=queue):
                await self._acknowledger.acknowledge(message)
            return
        delay: float | None = pop_delay(message.reconsume_times, delay_level)
        if message.reconsume_times >= self._max_times:
            delay = exhausted_delay((self._clock.now_ms() - message.born_timestamp_ms) / 1000)
        if delay is None:
            log.warning("message_dropped_after_failures", topic=message.topic, msg_id=message.msg_id)
            await self._acknowledger.acknowledge(message)
        else:
            await self._acknowledger.hide(message, delay)

    def _is_visible(self, chunk: _Chunk) -> bool:
        """Whether the time is over for which the messages are hidden: others may have them by now."""
        return self._clock.monotonic() >= chunk.deadline

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("consume_task_failed", reason=repr(error), exc_info=error)


def _hidden_for(message: MessageExt) -> float:
    return parse_extra_info(message.properties[PROPERTY_POP_CK]).invisible_time / 1000
