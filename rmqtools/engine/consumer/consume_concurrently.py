"""Consumes in any order: up to a fixed number of listener calls at once; failed messages are sent back.

Source of the rules: ConsumeMessageConcurrentlyService (Java client).
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.background import Background
from rmqtools.engine.consumer.listeners import Listeners
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext
from rmqtools.model.message import MessageExt
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.policy.reconsume import failed_messages, listener_batches, tried_again

log = get_logger(__name__)

_TRY_AGAIN_HERE = (
    5.0  # seconds until messages that could not be sent back are retried; upstream submitConsumeRequestLater
)
_TIMEOUT_DELAY_LEVEL = 3  # of messages whose listener took too long; upstream ProcessQueue.cleanExpiredMsg
_LONGEST_LOOK = 15.0  # seconds, at most, between checks for such messages


@dataclass(slots=True, eq=False)
class _Chunk:
    """Messages for one listener call; ``began`` is its start, by the monotonic clock."""

    held: ProcessQueue
    messages: Sequence[MessageExt]
    began: float = 0.0


class ConcurrentConsumption:
    """Hands fetched messages to listeners."""

    def __init__(
        self, member: Member, config: PushConsumerConfig, listeners: Listeners, send_back: SendBack
    ) -> None:
        self._names = member.names
        self._offsets = member.offsets
        self._is_broadcasting = member.is_broadcasting
        self._config = config
        self._listeners = listeners
        self._send_back = send_back
        self._clock = member.client.clock
        self._waiting: deque[_Chunk] = deque()
        self._running: set[_Chunk] = set()
        self._workers = Background()
        self._unbegun = 0  # workers that have not begun yet: each will take one chunk
        self._timers: set[asyncio.TimerHandle] = set()
        self._closing = False

    def take(self, held: ProcessQueue, messages: list[MessageExt]) -> None:
        """Queue messages for consumption as soon as a worker is free."""
        size = self._config.consume_message_batch_max_size
        for same_topic in self._plain_by_topic(messages):
            self._waiting.extend(_Chunk(held, batch) for batch in listener_batches(same_topic, size))
        self._employ()

    def _plain_by_topic(self, messages: list[MessageExt]) -> Iterable[list[MessageExt]]:
        """Messages with plain topics. Those of a retry topic belong to several topics."""
        first = messages[0]
        if not first.topic.startswith(RETRY_GROUP_TOPIC_PREFIX) and self._names.plain_message(first) is first:
            return [messages]  # all belong to the queue's own topic, and its name is plain
        plain = map(self._names.plain_message, messages)
        return [list(group) for _, group in groupby(plain, key=lambda message: message.topic)]

    def work_on(self, held: ProcessQueue) -> None:
        """Do nothing: :meth:`take` delivers the messages."""

    async def close(self, timeout: float) -> None:
        """Start no further listener calls; running ones have ``timeout`` seconds to end."""
        self._closing = True
        self._waiting.clear()
        for timer in self._timers:
            timer.cancel()
        await self._listeners.end(self._workers, timeout)

    async def watch_timeouts_forever(self) -> None:
        """Send back messages that a listener has had for longer than ``consume_timeout``."""
        while True:
            await asyncio.sleep(min(self._config.consume_timeout, _LONGEST_LOOK))
            await self.give_up_late()

    async def give_up_late(self) -> None:
        """Check once for messages that a listener has too long. In broadcasting, it keeps them."""
        latest = self._clock.monotonic() - self._config.consume_timeout
        late = [one for one in self._running if one.began < latest and not one.held.is_dropped]
        for chunk in () if self._is_broadcasting else late:
            if chunk in self._running:  # still running
                self._running.discard(chunk)
                log.warning("listener_timed_out", queue=str(chunk.held.queue), count=len(chunk.messages))
                await self._settle(chunk, chunk.messages, _TIMEOUT_DELAY_LEVEL)

    def _employ(self) -> None:
        """Start a worker for every waiting chunk, up to the allowed number."""
        wanted = min(len(self._waiting) - self._unbegun, self._config.consume_threads - len(self._workers))
        for _ in range(wanted):
            self._unbegun += 1
            self._workers.spawn("consume", self._work()).add_done_callback(self._ended)

    async def _work(self) -> None:
        self._unbegun -= 1
        while self._waiting and not self._closing:
            chunk = self._waiting.popleft()
            if chunk.held.is_dropped:
                continue
            try:
                await self._consume(chunk)
            except Exception as error:  # a listener's context may hold any value: its messages are retried
                log.error("consume_failed", queue=str(chunk.held.queue), reason=repr(error), exc_info=error)
                self._later(chunk)

    async def _consume(self, chunk: _Chunk) -> None:
        context = ConsumeContext(self._names.plain_queue(chunk.held.queue))
        chunk.began = self._clock.monotonic()
        self._running.add(chunk)
        try:
            status = await self._listeners.call(list(chunk.messages), context)
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
        """Send failed messages back. Messages that succeeded or were sent back count as consumed."""
        kept: list[MessageExt] = []
        if self._is_broadcasting:
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
            self._offsets.update(held.queue, offset, increase_only=True)

    def _later(self, chunk: _Chunk) -> None:
        def again() -> None:
            self._timers.discard(timer)
            self._waiting.append(chunk)
            self._employ()

        timer = asyncio.get_running_loop().call_later(_TRY_AGAIN_HERE, again)
        self._timers.add(timer)

    def _ended(self, _: asyncio.Task[None]) -> None:
        if not self._closing:
            self._employ()
