"""Consumes popped messages (5.x): each is acknowledged alone, a failed one is hidden for longer.

Source of the rules: ConsumeMessagePopConcurrentlyService (Java client). Ours: finished messages are
acknowledged even if the queue was given up meanwhile (Java has them delivered again). The invisible time is
measured from a message's arrival (Java compares the broker's clock with its own). Delay level -1 makes a dead
letter. A failed message of a stored batch goes to the retry topic, since brokers do not deliver popped
batches again (see ``acknowledge``).
"""

import asyncio
import math
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rmqtools.clock import Clock
from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.background import Background
from rmqtools.engine.consumer.acknowledge import Acknowledger
from rmqtools.engine.consumer.listeners import Listeners
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.pop_delay import exhausted_delay, pop_delay
from rmqtools.policy.reconsume import NO_MORE_TRIES, failed_messages, listener_batches, max_reconsume_times
from rmqtools.protocol.headers.pop_extra_info import parse_extra_info
from rmqtools.protocol.messages.inner_batch import is_inner_batch

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Messages of one queue for one listener call; from ``deadline`` (monotonic) on, others may get them."""

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
        self._tasks = Background()
        self._closing = False

    def take(self, held: PopProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Queue messages for consumption as soon as a listener call is free."""
        size, now = self._config.consume_message_batch_max_size, self._clock.monotonic()
        for _, group in groupby(messages, key=lambda message: (message.queue_id, _is_of_batch(message))):
            for part in listener_batches(list(group), size):
                chunk = _Chunk(held, part, now + _hidden_for(part[0]))
                self._tasks.spawn("consume", self._consume(chunk))

    async def close(self, timeout: float) -> None:
        """Start no further listener calls; running ones have ``timeout`` seconds to end."""
        self._closing = True
        await self._listeners.end(self._tasks, timeout)

    async def _consume(self, chunk: _Chunk) -> None:
        try:
            async with self._free:
                if self._closing or chunk.held.is_dropped or self._is_visible(chunk):
                    await self._leave(chunk)
                    return
                first = chunk.messages[0]
                queue = MessageQueue(first.topic, first.broker_name, first.queue_id)
                context = ConsumeContext(queue)
                status = await self._listeners.call(list(chunk.messages), context)
            if self._is_visible(chunk):
                log.warning("listener_outlasted_invisible_time", queue=str(queue), count=len(chunk.messages))
                return
            assert isinstance(status, ConsumeConcurrentlyStatus)
            await self._settle(chunk, status, context)
        finally:
            chunk.held.settled(len(chunk.messages))

    async def _leave(self, chunk: _Chunk) -> None:
        """Leave messages to other members: brokers deliver them again, except stored batches."""
        left = [
            self._try_again(message, 0, chunk.held.queue)
            for message in chunk.messages
            if _is_of_batch(message)
        ]
        await asyncio.gather(*left)

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
        if delay_level < 0 or _is_of_batch(message):
            if await self._send_back.send(message, max(delay_level, NO_MORE_TRIES), queue=queue):
                await self._acknowledger.acknowledge(message)
            elif _is_of_batch(message):
                await self._acknowledger.hide(message, pop_delay(message.reconsume_times))
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
        """Whether the invisible time is over, so that other members may have the messages."""
        return self._clock.monotonic() >= chunk.deadline


def _is_of_batch(message: MessageExt) -> bool:
    return is_inner_batch(message.sys_flag)


def _hidden_for(message: MessageExt) -> float:
    """Seconds until others may have a message; brokers do not give a stored batch to others."""
    if _is_of_batch(message):
        return math.inf
    return parse_extra_info(message.properties[PROPERTY_POP_CK]).invisible_time / 1000
