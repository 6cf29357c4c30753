"""Consumes popped messages (5.x): they are acknowledged together, a failed one is hidden for longer.

Source of the rules: ConsumeMessagePopConcurrentlyService (Java client). Ours: finished messages are
acknowledged even if the queue was given up meanwhile (Java has them delivered again). The invisible time is
measured from a message's arrival (Java compares the broker's clock with its own). Delay level -1 makes a dead
letter. A failed message of a stored batch goes to the retry topic, since brokers do not deliver popped
batches again (see ``acknowledge``).
"""

import asyncio
import math
from collections.abc import Sequence
from itertools import chain, groupby
from operator import attrgetter

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.consumer.acknowledge import Acknowledger
from rmqtools.engine.consumer.burst import Burst
from rmqtools.engine.consumer.burst_sources import PopSource
from rmqtools.engine.consumer.listeners import ConsumeStatus, Listeners
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.consumer.workers import Arrival, Call, Ended, Workers, calls_of
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.redelivery import (
    NO_MORE_TRIES,
    exhausted_delay,
    failed_messages,
    max_reconsume_times,
    pop_delay,
)
from rmqtools.protocol.messages.inner_batch import INNER_BATCH, has_sys_flag, is_inner_batch
from rmqtools.protocol.messages.popped import extra_info_of
from rmqtools.protocol.wire.template import Request

log = get_logger(__name__)

_Consumed = tuple[PopProcessQueue, Sequence[MessageExt]]


class PopConsumption:
    """Hands popped messages to listeners."""

    def __init__(
        self,
        config: PushConsumerConfig,
        listeners: Listeners,
        *,
        acknowledger: Acknowledger,
        send_back: SendBack,
        client: ClientCore,
    ) -> None:
        self._config = config
        self._acknowledger = acknowledger
        self._send_back = send_back
        self._clock = client.clock
        self._max_times = max_reconsume_times(config.max_reconsume_times)
        self._workers: Workers[PopProcessQueue] = Workers(
            client.clock, listeners, self, most=config.consume_threads
        )
        self._burst = Burst(
            client,
            listeners,
            self._workers,
            arrange=self._arrange,
            take_up=self._take_up,
            take_back=self._take_back,
        )
        self.may_burst, self.add = self._burst.may_burst, self._burst.add
        self._telling = Background()  # requests that settle messages
        self._consumed: dict[str, list[_Consumed]] = {}  # by broker: waits while a request is on the wire

    def consume(self, held: PopProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Queue messages for consumption as soon as a listener call is free."""
        for arrival in self._arrange(held, messages):
            self._workers.add(arrival)

    def _arrange(
        self, held: PopProcessQueue, messages: Sequence[MessageExt]
    ) -> list[Arrival[PopProcessQueue]]:
        """Return the arrivals of messages that came just now. Safe on any thread."""
        size = self._config.consume_message_batch_max_size
        now = self._clock.monotonic()
        arrivals = []
        has_batches = has_sys_flag(messages, INNER_BATCH)
        for _, group in groupby(messages, key=_place_of if has_batches else _queue_id_of):
            part = list(group)
            first = part[0]
            queue = MessageQueue(first.topic, first.broker_name, first.queue_id)
            until = now + _hidden_for(first)
            arrivals.append(Arrival(held, first.topic, queue, calls_of(part, size), until=until))
        return arrivals

    def acknowledgement(self, ended: Sequence[Ended[PopProcessQueue]]) -> Request | None:
        """Return the request that acknowledges all these calls; None: the loop is to look at each.

        Safe on any thread.
        """
        now = self._clock.monotonic()
        if any(now >= part.arrival.until for part in ended):
            return None
        calls = chain.from_iterable(part.calls for part in ended)
        return self._acknowledger.together(list(chain.from_iterable(calls)))

    def _take_up(self, source: PopSource, in_call: bool) -> bool:
        """See :class:`Burst`. Other workers make the calls that have not begun."""
        self._take_back(source)
        return True

    def _take_back(self, source: PopSource) -> None:
        """See :class:`Burst`."""
        ended, source.ended = source.ended, []
        arrivals, source.arrivals = source.arrivals, []
        if source.part is not None:
            ended.append(source.part)
            arrivals.insert(0, source.part.arrival)
        for part in ended:
            self._workers.count_ended(part)
        for arrival in arrivals:
            self._workers.add(arrival)

    async def close(self, timeout: float) -> None:
        """Start no further listener calls; running ones have ``timeout`` seconds to end."""
        ended = self._clock.monotonic() + timeout
        await asyncio.gather(self._workers.close(timeout), self._burst.close(timeout))
        if self._telling:
            await asyncio.wait(self._telling.tasks, timeout=max(0.0, ended - self._clock.monotonic()))
        await self._telling.stop()

    def consumed(self, arrival: Arrival[PopProcessQueue], messages: Sequence[MessageExt]) -> None:
        """See :class:`ResultHandler`."""
        if self._is_hidden(arrival, messages):
            self._acknowledge_soon(arrival.queue.broker_name, (arrival.held, messages))
        else:
            arrival.held.settled(len(messages))

    async def not_all_consumed(
        self, call: Call[PopProcessQueue], status: ConsumeStatus, context: ConsumeContext
    ) -> None:
        """See :class:`ResultHandler`."""
        arrival, messages = call
        try:
            if self._is_hidden(arrival, messages):
                assert isinstance(status, ConsumeConcurrentlyStatus)
                failed = failed_messages(messages, status, context.ack_index)
                consumed = messages[: len(messages) - len(failed)]
                level, queue = context.delay_level_when_next_consume, arrival.held.queue
                await asyncio.gather(
                    self._acknowledger.acknowledge_all(consumed),
                    *(self._try_again(message, level, queue) for message in failed),
                )
        finally:
            arrival.held.settled(len(messages))

    def not_begun(self, call: Call[PopProcessQueue]) -> None:
        """Leave messages to other members: brokers deliver them again, except stored batches."""
        arrival, messages = call
        if _is_of_batch(messages[0]):
            self._telling.spawn("leave", self._leave(arrival.held, messages))
        else:
            arrival.held.settled(len(messages))

    def again(self, call: Call[PopProcessQueue]) -> None:
        """Stop counting the messages; brokers deliver them again when their invisible time ends."""
        arrival, messages = call
        arrival.held.settled(len(messages))

    def _acknowledge_soon(self, broker_name: str, consumed: _Consumed) -> None:
        """Acknowledge messages now, or together with others when the request before is answered."""
        waiting = self._consumed.get(broker_name)
        if waiting is not None:
            waiting.append(consumed)
            return
        self._consumed[broker_name] = [consumed]
        self._telling.spawn("acknowledge", self._acknowledge(broker_name))

    async def _acknowledge(self, broker_name: str) -> None:
        """Acknowledge what was consumed of one broker's messages, until nothing more waits."""
        try:
            while taken := self._consumed[broker_name]:
                self._consumed[broker_name] = []
                await self._acknowledge_taken(taken)
        finally:
            del self._consumed[broker_name]

    async def _acknowledge_taken(self, taken: Sequence[_Consumed]) -> None:
        try:
            await self._acknowledger.acknowledge_all([one for _, messages in taken for one in messages])
        finally:
            for held, messages in taken:
                held.settled(len(messages))

    async def _leave(self, held: PopProcessQueue, messages: Sequence[MessageExt]) -> None:
        try:
            await asyncio.gather(*(self._try_again(message, 0, held.queue) for message in messages))
        finally:
            held.settled(len(messages))

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

    def _is_hidden(self, arrival: Arrival[PopProcessQueue], messages: Sequence[MessageExt]) -> bool:
        """Return whether no other member may have the messages by now."""
        if self._clock.monotonic() < arrival.until:
            return True
        log.warning("listener_outlasted_invisible_time", queue=str(arrival.queue), count=len(messages))
        return False


_queue_id_of = attrgetter("queue_id")


def _place_of(message: MessageExt) -> tuple[int, bool]:
    return message.queue_id, _is_of_batch(message)


def _is_of_batch(message: MessageExt) -> bool:
    return is_inner_batch(message.sys_flag)


def _hidden_for(message: MessageExt) -> float:
    """Seconds until others may have a message; brokers do not give a stored batch to others."""
    if _is_of_batch(message):
        return math.inf
    return extra_info_of(message).invisible_time / 1000
