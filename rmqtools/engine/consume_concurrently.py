"""Consuming in any order: a fixed number of listeners at once, failed messages sent back to their brokers.

Source of the rules: ConsumeMessageConcurrentlyService (Java client).
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rmqtools.config_consumer import PushConsumerConfig
from rmqtools.engine.consumer import ConsumerCore
from rmqtools.engine.listeners import Listeners, end_listeners
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.send_back import SendBack
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext
from rmqtools.model.message import MessageExt
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.policy.reconsume import failed_messages, tried_again

log = get_logger(__name__)

_TRY_AGAIN_HERE = (
    5.0  # seconds until messages that could not be sent back come again; upstream submitConsumeRequestLater
)
_TIMEOUT_DELAY_LEVEL = 3  # of messages whose listener took too long; upstream ProcessQueue.cleanExpiredMsg
_LONGEST_LOOK = 15.0  # seconds between two looks for such


@dataclass(slots=True, eq=False)
class _Chunk:
    """Messages that a listener gets at once; ``began`` is when, by the monotonic clock."""

    held: ProcessQueue
    messages: Sequence[MessageExt]
    began: float = 0.0


class ConcurrentConsumption:
    """Hands fetched messages to listeners."""

    def __init__(
        self, owner: ConsumerCore, config: PushConsumerConfig, listeners: Listeners, send_back: SendBack
    ) -> None:
        self._owner = owner
        self._config = config
        self._listeners = listeners
        self._send_back = send_back
        self._clock = owner.client.clock
        self._waiting: deque[_Chunk] = deque()
        self._running: set[_Chunk] = set()
        self._workers: set[asyncio.Task[None]] = set()
        self._unbegun = 0  # workers that have not begun yet: each will find a chunk
        self._timers: set[asyncio.TimerHandle] = set()
        self._closing = False

    def take(self, held: ProcessQueue, messages: list[MessageExt]) -> None:
        """Have messages consumed as soon as there is a listener free."""
        size = self._config.consume_message_batch_max_size
        for same_topic in self._plain_by_topic(messages):
            for start in range(0, len(same_topic), size):
                self._waiting.append(_Chunk(held, tuple(same_topic[start : start + size])))
        self._employ()

    def _plain_by_topic(self, messages: list[MessageExt]) -> Iterable[list[MessageExt]]:
        """Messages with the topics their user knows; those of a retry topic come from several."""
        first = messages[0]
        if not first.topic.startswith(RETRY_GROUP_TOPIC_PREFIX) and self._owner.plain_message(first) is first:
            return [messages]  # all are of the queue's own topic, and it is plain
        plain = map(self._owner.plain_message, messages)
        return [list(group) for _, group in groupby(plain, key=lambda message: message.topic)]

    def work_on(self, held: ProcessQueue) -> None:
        """Nothing: messages come by :meth:`take`."""

    async def close(self, timeout: float) -> None:
        """Start no listener any more; those under way have ``timeout`` seconds to end."""
        self._closing = True
        self._waiting.clear()
        for timer in self._timers:
            timer.cancel()
        await end_listeners(self._workers, timeout, group=self._owner.group)

    async def watch_timeouts_forever(self) -> None:
        """Send back what a listener has had for longer than ``consume_timeout``."""
        while True:
            await asyncio.sleep(min(self._config.consume_timeout, _LONGEST_LOOK))
            await self.give_up_late()

    async def give_up_late(self) -> None:
        """Look once for what a listener has for too long; where nothing is tried again it may keep it."""
        latest = self._clock.monotonic() - self._config.consume_timeout
        late = [one for one in self._running if one.began < latest and not one.held.is_dropped]
        for chunk in () if self._owner.is_broadcasting else late:
            if chunk in self._running:  # did not end meanwhile
                self._running.discard(chunk)
                log.warning("listener_timed_out", queue=str(chunk.held.queue), count=len(chunk.messages))
                await self._settle(chunk, chunk.messages, _TIMEOUT_DELAY_LEVEL)

    def _employ(self) -> None:
        """Have a worker for every chunk that waits, up to the number allowed."""
        wanted = min(len(self._waiting) - self._unbegun, self._config.consume_threads - len(self._workers))
        for _ in range(wanted):
            self._unbegun += 1
            task = asyncio.create_task(self._work(), name="consume")
            self._workers.add(task)
            task.add_done_callback(self._ended)

    async def _work(self) -> None:
        self._unbegun -= 1
        while self._waiting and not self._closing:
            chunk = self._waiting.popleft()
            if chunk.held.is_dropped:
                continue
            try:
                await self._consume(chunk)
            except Exception as error:  # a listener's context may hold anything: its messages come again
                log.error("consume_failed", queue=str(chunk.held.queue), reason=repr(error), exc_info=error)
                self._later(chunk)

    async def _consume(self, chunk: _Chunk) -> None:
        context = ConsumeContext(self._owner.plain_queue(chunk.held.queue))
        chunk.began = self._clock.monotonic()
        self._running.add(chunk)
        try:
            status = await self._listeners.call(chunk.messages, context)
        finally:
            given_up = chunk not in self._running
            self._running.discard(chunk)
        if given_up:
            return
        assert isinstance(status, ConsumeConcurrentlyStatus)
        if chunk.held.is_dropped:
            log.info("result_of_dropped_queue", queue=str(chunk.held.queue), count=len(chunk.messages))
            return
        failed = failed_messages(chunk.messages, status, context.ack_index)
        await self._settle(chunk, failed, context.delay_level_when_next_consume)

    async def _settle(self, chunk: _Chunk, failed: Sequence[MessageExt], delay_level: int) -> None:
        """Send failed messages back; what succeeded or was sent back is consumed."""
        kept: list[MessageExt] = []
        if self._owner.is_broadcasting:
            if failed:
                log.warning("messages_dropped_after_failure", queue=str(chunk.held.queue), count=len(failed))
        elif failed:
            queue = chunk.held.queue
            sent = await asyncio.gather(
                *(self._send_back.send(message, delay_level, queue=queue) for message in failed)
            )
            kept = [message for message, done in zip(failed, sent, strict=True) if not done]
        if not kept:
            self._consumed(chunk.held, chunk.messages)
            return
        offsets = {message.queue_offset for message in kept}
        self._consumed(chunk.held, [one for one in chunk.messages if one.queue_offset not in offsets])
        self._later(_Chunk(chunk.held, tuple(map(tried_again, kept))))

    def _consumed(self, held: ProcessQueue, messages: Iterable[MessageExt]) -> None:
        offset = held.remove(messages)
        if offset >= 0 and not held.is_dropped:
            self._owner.offsets.update(held.queue, offset, increase_only=True)

    def _later(self, chunk: _Chunk) -> None:
        def again() -> None:
            self._timers.discard(timer)
            self._waiting.append(chunk)
            self._employ()

        timer = asyncio.get_running_loop().call_later(_TRY_AGAIN_HERE, again)
        self._timers.add(timer)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._workers.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("consume_task_failed", reason=repr(error), exc_info=error)
        if not self._closing:
            self._employ()
