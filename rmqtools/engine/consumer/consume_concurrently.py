"""Consumes in any order: up to a fixed number of listener calls at once; failed messages are sent back.

Source of the rules: ConsumeMessageConcurrentlyService (Java client).
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.background import Background
from rmqtools.engine.consumer.crossing import Crossing
from rmqtools.engine.consumer.listeners import ConsumeStatus, Listeners, OnThread
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.log import get_logger
from rmqtools.model.consume import ACK_ALL, ConsumeConcurrentlyStatus, ConsumeContext
from rmqtools.model.message import MessageExt
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.policy.reconsume import failed_messages, listener_batches, tried_again

log = get_logger(__name__)

_TRY_AGAIN_HERE = (
    5.0  # seconds until messages that could not be sent back are retried; upstream submitConsumeRequestLater
)
_TIMEOUT_DELAY_LEVEL = 3  # of messages whose listener took too long; upstream ProcessQueue.cleanExpiredMsg
_LONGEST_LOOK = 15.0  # seconds, at most, between checks for such messages
_SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
_LONGEST_RUN = 0.010  # seconds after which a thread begins no further call and lets waiting work come first


@dataclass(slots=True, eq=False)
class _Chunk:
    """Messages for one listener call.

    Attributes:
        began: when the call began, by the monotonic clock.
        seconds: how long the call took (blocking listeners).
        is_settled: the call took too long, and its messages were sent back; its result does not count.
    """

    held: ProcessQueue
    messages: Sequence[MessageExt]
    began: float = 0.0
    seconds: float = 0.0
    is_settled: bool = False


class _Failed(NamedTuple):
    """A call of a blocking listener that did not acknowledge all its messages."""

    chunk: _Chunk
    status: ConsumeStatus
    context: ConsumeContext


@dataclass(slots=True, eq=False)
class _Worker:
    """Calls listeners one after the other.

    Attributes:
        has_begun: it has taken up its work.
        chunk: what its listener has now.
    """

    has_begun: bool = False
    chunk: _Chunk | None = None


class ConcurrentConsumption:
    """Hands fetched messages to listeners.

    Coroutine listeners are called by up to ``consume_threads`` tasks. Blocking ones are called on as many
    threads, which take the waiting messages one by one, without the loop between two calls
    (docs/decisions/0029).
    """

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
        self._working: set[_Worker] = set()
        self._workers = Background()
        self._unbegun = 0  # workers that have not begun yet: each will take one chunk
        self._newest = _Worker(has_begun=True)
        self._consumed_on_threads: Crossing[_Chunk | None] = Crossing(self._take_consumed)
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
        for worker in () if self._is_broadcasting else tuple(self._working):
            chunk = worker.chunk  # a thread may end the call meanwhile, then the messages are consumed twice
            if chunk is None or chunk.is_settled or chunk.held.is_dropped or chunk.began >= latest:
                continue
            chunk.is_settled = True
            log.warning("listener_timed_out", queue=str(chunk.held.queue), count=len(chunk.messages))
            await self._settle(chunk, chunk.messages, _TIMEOUT_DELAY_LEVEL)

    def _employ(self) -> None:
        """Start workers for waiting chunks, up to the allowed number.

        Threads are started one after the other: the next when the one before has begun and chunks still wait.
        """
        if self._closing:
            return
        free = self._config.consume_threads - len(self._workers)
        if (on_thread := self._listeners.on_thread) is not None:
            if self._waiting and free > 0 and self._newest.has_begun:
                self._newest = _Worker()
                self._hire(self._work_on(on_thread, self._newest), self._newest)
            return
        for _ in range(min(len(self._waiting) - self._unbegun, free)):
            self._unbegun += 1
            worker = _Worker()
            self._hire(self._work(worker), worker)

    def _hire(self, work: Coroutine[Any, Any, None], worker: _Worker) -> None:
        def ended(_: object) -> None:
            worker.has_begun = True
            self._working.discard(worker)
            if worker.chunk is not None and not self._closing:  # the worker failed, and not its listener
                self._later(worker.chunk)
            self._employ()

        self._working.add(worker)
        self._workers.spawn("consume", work).add_done_callback(ended)

    async def _work(self, worker: _Worker) -> None:
        """Have coroutines consume what waits."""
        self._unbegun -= 1
        while self._waiting and not self._closing:
            chunk = self._waiting.popleft()
            if chunk.held.is_dropped:
                continue
            context = ConsumeContext(self._names.plain_queue(chunk.held.queue))
            chunk.began = self._clock.monotonic()
            worker.chunk = chunk
            status = await self._listeners.call(list(chunk.messages), context)
            worker.chunk = None
            if status is _SUCCESS and context.ack_index is ACK_ALL:
                if self._counts(chunk):
                    self._consumed(chunk.held, chunk.messages)
            else:
                await self._end(chunk, status, context)

    async def _work_on(self, on_thread: OnThread, worker: _Worker) -> None:
        """Have a thread consume what waits; a call that failed is settled before the next begins."""
        self._consumed_on_threads.open()
        while self._waiting and not self._closing:
            failed = await on_thread(partial(self._run, worker))
            self._consumed_on_threads.take()
            if failed is not None:
                chunk, status, context = failed
                count, topic = len(chunk.messages), chunk.messages[0].topic
                self._listeners.count(topic, status, count=count, seconds=chunk.seconds)
                await self._end(chunk, status, context)

    def _run(self, worker: _Worker) -> _Failed | None:
        """On a thread of the listeners: take waiting chunks and call listeners.

        Ends when nothing waits, after a while, or with the first call that did not acknowledge everything,
        and returns that call. The others go to the loop as they end.
        """
        worker.has_begun = True
        self._consumed_on_threads.put(None)  # the loop may start the next worker
        began = now = self._clock.monotonic()
        while now - began < _LONGEST_RUN and not self._closing:
            try:
                chunk = self._waiting.popleft()
            except IndexError:  # another thread has taken the last one
                break
            if chunk.held.is_dropped:
                continue
            chunk.began = now
            worker.chunk = chunk
            context = ConsumeContext(self._names.plain_queue(chunk.held.queue))
            status = self._listeners.call_here(list(chunk.messages), context)
            worker.chunk = None
            now = self._clock.monotonic()
            chunk.seconds = now - chunk.began
            if status is not _SUCCESS or context.ack_index is not ACK_ALL:
                return _Failed(chunk, status, context)
            self._consumed_on_threads.put(chunk)
        return None

    def _take_consumed(self, chunks: list[_Chunk | None]) -> None:
        """On the loop: note what threads have consumed, queue by queue."""
        called: defaultdict[str, list[_Chunk]] = defaultdict(list)
        consumed: defaultdict[ProcessQueue, list[MessageExt]] = defaultdict(list)
        for chunk in chunks:
            if chunk is not None:
                called[chunk.messages[0].topic].append(chunk)
                if self._counts(chunk):
                    consumed[chunk.held] += chunk.messages
        for topic, calls in called.items():
            count, seconds = sum(len(one.messages) for one in calls), sum(one.seconds for one in calls)
            self._listeners.count(topic, _SUCCESS, count=count, seconds=seconds, calls=len(calls))
        for held, messages in consumed.items():
            self._consumed(held, messages)
        self._employ()

    def _counts(self, chunk: _Chunk) -> bool:
        """Whether the result of a call counts that has ended now."""
        if chunk.is_settled:
            return False
        if chunk.held.is_dropped:
            log.info("result_of_dropped_queue", queue=str(chunk.held.queue), count=len(chunk.messages))
            return False
        return True

    async def _end(self, chunk: _Chunk, status: ConsumeStatus, context: ConsumeContext) -> None:
        if not self._counts(chunk):
            return
        try:
            assert isinstance(status, ConsumeConcurrentlyStatus)
            failed = failed_messages(chunk.messages, status, context.ack_index)
            await self._settle(chunk, failed, context.delay_level_when_next_consume)
        except Exception as error:  # a listener's context may hold any value: its messages are retried
            log.error("consume_failed", queue=str(chunk.held.queue), reason=repr(error), exc_info=error)
            self._later(chunk)

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
