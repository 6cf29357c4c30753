"""Consumes in any order: up to a fixed number of listener calls at once; failed messages are sent back.

Source of the rules: ConsumeMessageConcurrentlyService (Java client).
"""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import groupby

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.consumer.burst import Burst
from rmqtools.engine.consumer.burst_sources import PullSource
from rmqtools.engine.consumer.listeners import ConsumeStatus, Listeners
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.consumer.workers import Arrival, Call, Workers, calls_of
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.process_queue import HeldAnswer, ProcessQueue
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext
from rmqtools.model.message import MessageExt
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.policy.redelivery import failed_messages, tried_again

log = get_logger(__name__)

# seconds until messages that could not be sent back are retried; upstream submitConsumeRequestLater
_TRY_AGAIN_HERE = 5.0
_TIMEOUT_DELAY_LEVEL = 3  # of messages whose listener took too long; upstream ProcessQueue.cleanExpiredMsg
_LONGEST_LOOK = 15.0  # seconds, at most, between checks for such messages


class ConcurrentConsumption:
    """Hands fetched messages to listeners."""

    def __init__(
        self, member: Member, config: PushConsumerConfig, listeners: Listeners, send_back: SendBack
    ) -> None:
        self._names = member.names
        self._offsets = member.offsets
        self._is_broadcasting = member.is_broadcasting
        self._config = config
        self._send_back = send_back
        self._clock = member.client.clock
        self._workers: Workers[ProcessQueue] = Workers(
            member.client.clock, listeners, self, most=config.consume_threads
        )
        member.longest_call = self._workers.longest_call
        self._burst = Burst(
            member.client, listeners, self._workers, arrange=self._arrange, take_up=self._take_up
        )
        member.offsets.before_persist(self._burst.note_queue)
        self.may_burst, self.add = self._burst.may_burst, self._burst.add
        self._timers: set[asyncio.TimerHandle] = set()
        self._closing = False

    @property
    def running(self) -> int:
        """Number of workers that call listeners now."""
        return len(self._workers)

    def consume(self, held: ProcessQueue, answer: HeldAnswer) -> None:
        """Queue messages for consumption as soon as a worker is free."""
        queue, size = self._names.plain_queue(held.queue), self._config.consume_message_batch_max_size
        for same_topic in self._plain_by_topic(answer.messages):
            calls = calls_of(same_topic, size)
            self._workers.add(Arrival(held, same_topic[0].topic, queue, calls, answer))

    def _plain_by_topic(self, messages: Sequence[MessageExt]) -> Iterable[Sequence[MessageExt]]:
        """Messages with plain topics. Those of a retry topic belong to several topics."""
        first = messages[0]
        if not first.topic.startswith(RETRY_GROUP_TOPIC_PREFIX) and self._names.plain_message(first) is first:
            return [messages]  # all belong to the queue's own topic, and its name is plain
        plain = map(self._names.plain_message, messages)
        return [list(group) for _, group in groupby(plain, key=lambda message: message.topic)]

    def work_on(self, held: ProcessQueue) -> None:
        """Do nothing: :meth:`consume` delivers the messages."""

    async def close(self, timeout: float) -> None:
        """Start no further listener calls; running ones have ``timeout`` seconds to end."""
        self._closing = True
        for timer in self._timers:
            timer.cancel()
        await asyncio.gather(self._workers.close(timeout), self._burst.close(timeout))

    async def watch_timeouts_forever(self) -> None:
        """Send back messages that a listener has had for longer than ``consume_timeout``."""
        while True:
            await asyncio.sleep(min(self._config.consume_timeout, _LONGEST_LOOK))
            await self.give_up_late()

    async def give_up_late(self) -> None:
        """Check once for messages that a listener has too long. In broadcasting, it keeps them."""
        latest = self._clock.monotonic() - self._config.consume_timeout
        for call in () if self._is_broadcasting else self._workers.give_up_late(latest):
            arrival, messages = call
            log.warning("listener_timed_out", queue=str(arrival.held.queue), count=len(messages))
            await self._send_back_failed(call, messages, _TIMEOUT_DELAY_LEVEL)

    def _arrange(self, held: ProcessQueue, messages: Sequence[MessageExt]) -> list[Arrival[ProcessQueue]]:
        """See :class:`Burst`. The names of a burst are plain."""
        calls = calls_of(messages, self._config.consume_message_batch_max_size)
        return [Arrival(held, held.queue.topic, held.queue, calls)]

    def _take_up(self, source: PullSource, in_call: bool) -> bool:
        """See :class:`Burst`. Other workers make the calls that have not begun."""
        if not source.held.is_dropped:
            assert source.part is not None
            arrival = source.part.arrival
            arrival.answer = source.held.put(source.messages)
            self._workers.add(arrival)
            source.held.next_offset = source.after
        return True

    def consumed(self, arrival: Arrival[ProcessQueue], messages: Sequence[MessageExt]) -> None:
        """See :class:`ResultHandler`."""
        if self._counts(arrival, messages):
            self._finish(arrival, messages)

    async def not_all_consumed(
        self, call: Call[ProcessQueue], status: ConsumeStatus, context: ConsumeContext
    ) -> None:
        """See :class:`ResultHandler`."""
        arrival, messages = call
        if not self._counts(arrival, messages):
            return
        try:
            assert isinstance(status, ConsumeConcurrentlyStatus)
            failed = failed_messages(messages, status, context.ack_index)
            await self._send_back_failed(call, failed, context.delay_level_when_next_consume)
        except Exception as error:  # a listener's context may hold any value: its messages are retried
            log.error("consume_failed", queue=str(arrival.held.queue), reason=repr(error), exc_info=error)
            self.again(call)

    def not_begun(self, call: Call[ProcessQueue]) -> None:
        """Do nothing: messages of a queue that was given up are another member's."""

    def again(self, call: Call[ProcessQueue]) -> None:
        """See :class:`ResultHandler`. After a while, all messages of the call together."""
        if self._closing:
            return

        def take_again() -> None:
            self._timers.discard(timer)
            arrival, messages = call
            self._workers.add(arrival.with_call(messages))

        timer = asyncio.get_running_loop().call_later(_TRY_AGAIN_HERE, take_again)
        self._timers.add(timer)

    def _counts(self, arrival: Arrival[ProcessQueue], messages: Sequence[MessageExt]) -> bool:
        """Return whether the result of calls counts that have ended now."""
        if arrival.held.is_dropped:
            log.info("result_of_dropped_queue", queue=str(arrival.held.queue), count=len(messages))
        return not arrival.held.is_dropped

    async def _send_back_failed(
        self, call: Call[ProcessQueue], failed: Sequence[MessageExt], delay_level: int
    ) -> None:
        """Send failed messages back. Messages that succeeded or were sent back count as consumed."""
        arrival, messages = call
        queue, kept = arrival.held.queue, list[MessageExt]()
        if self._is_broadcasting:
            if failed:
                log.warning("messages_dropped_after_failure", queue=str(queue), count=len(failed))
        elif failed:
            sent = await asyncio.gather(
                *(self._send_back.send(message, delay_level, queue=queue) for message in failed)
            )
            kept = [message for message, done in zip(failed, sent, strict=True) if not done]
        if not kept:
            self._finish(arrival, messages)
            return
        offsets = {message.queue_offset for message in kept}
        self._finish(arrival, [one for one in messages if one.queue_offset not in offsets])
        self.again((arrival, tuple(map(tried_again, kept))))

    def _finish(self, arrival: Arrival[ProcessQueue], messages: Sequence[MessageExt]) -> None:
        held, answer = arrival.held, arrival.answer
        assert answer is not None
        offset = held.finish(answer, messages)
        if not held.is_dropped:
            self._offsets.update(held.queue, offset, increase_only=True)
