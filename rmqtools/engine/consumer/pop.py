"""Popping (5.x): the broker hands out messages and hides them until they are acknowledged.

Each popped queue has a task that sends one pop after the other, including long polls. A message that is not
acknowledged within the invisible time is delivered again, from its topic's retry topic, which brokers pop
together with the topic itself.
Source of the rules: DefaultMQPushConsumerImpl.popMessage, processPopResult, PullAPIWrapper.popAsync (Java
client). Ours: nothing of an unsubscribed topic is requested or handed out.
"""

import asyncio
from collections.abc import Iterator, Sequence

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.refusals import FETCH
from rmqtools.engine.consumer.acknowledge import Acknowledger
from rmqtools.engine.consumer.consume_pop import PopConsumption
from rmqtools.engine.consumer.decode_answers import AnswerDecoder
from rmqtools.engine.consumer.fetch_loop import LOOK_AGAIN, FetchLoop
from rmqtools.engine.consumer.fetch_policy import PushFetch
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.engine.reading.range_filter import is_wanted
from rmqtools.errors import BrokerError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.assignment import pop_init_mode
from rmqtools.policy.reconsume import max_reconsume_times
from rmqtools.protocol.headers.pull import PopMessageRequestHeader
from rmqtools.protocol.messages.popped import Portion
from rmqtools.protocol.wire.command import request
from rmqtools.protocol.wire.template import Request, RequestTemplate

log = get_logger(__name__)

_NOTHING = (ResponseCode.POLLING_TIMEOUT, ResponseCode.PULL_NOT_FOUND)
_ANSWER_PATIENCE = 10.0  # seconds beyond the long poll; upstream PullAPIWrapper.popAsync


class Popper:
    """Pops queues, each in a task of its own."""

    def __init__(
        self,
        member: Member,
        config: PushConsumerConfig,
        *,
        policy: PushFetch,
        acknowledger: Acknowledger,
        consumption: PopConsumption,
    ) -> None:
        self._member = member
        self._config = config
        self._client = member.client
        self._policy = policy
        self._acknowledger = acknowledger
        self._consumption = consumption
        self._invisible_time = config.pop_invisible_time
        self._max_times = max_reconsume_times(config.max_reconsume_times)
        self._loop = FetchLoop(member, policy.rate, self._pop_once, self._log_failure)
        self._forms: dict[tuple[MessageQueue, str, str], RequestTemplate] = {}  # by queue and filter
        self._decoder = AnswerDecoder(
            member.note_passed_over,
            max_messages=config.pop_batch_nums,
            max_body_bytes=config.max_decompressed_bytes,
        )

    def start(self, held: PopProcessQueue) -> None:
        """Begin to pop a queue."""
        task = self._loop.start(held, f"pop {held.queue}")
        task.add_done_callback(lambda _: self._loop.forget(held.queue))

    async def close(self) -> None:
        """Stop popping."""
        await self._loop.tasks.stop()

    async def pop(self, held: PopProcessQueue) -> Iterator[Portion] | None:
        """Send one pop; the broker holds the answer until it has messages or the long poll ends.

        They come in portions, nearly always one. None: too many clients already wait at the broker.
        """
        addr = self._client.routes.master_addr(self._client.routes.broker_name(held.queue))
        timeout = self._config.long_poll_timeout + _ANSWER_PATIENCE
        wanted = self._member.subscriptions.of(held.queue.topic)
        asked = await self._client.queue_types.filter_at_broker(held.queue, wanted)
        answer = await self._client.remoting.invoke(addr, self._request(held.queue, asked), timeout=timeout)
        if answer.code == ResponseCode.SUCCESS:
            self._acknowledger.note_version(held.queue.broker_name, answer.version)
            topic = self._member.names.plain_topic(held.queue.topic)
            popped = self._decoder.popped(held.queue, answer, topic=topic)
            if popped.broken:
                tell = self._acknowledger.acknowledge_broken
                await asyncio.gather(*(tell(topic, info) for info in popped.broken))
            return popped.portions
        if answer.code == ResponseCode.POLLING_FULL:
            return None
        if answer.code in _NOTHING:
            return iter(())
        raise BrokerError(answer.code, answer.remark, addr)

    def _request(self, queue: MessageQueue, asked: SubscriptionData) -> Request:
        key = (queue, asked.expression_type, asked.sub_string)
        form = self._forms.get(key)
        if form is None:
            command = request(self._header(queue, asked))
            form = self._forms[key] = RequestTemplate(command, ("bornTime", "maxMsgNums"))
        most = self._policy.rate.batch_size(self._config.pop_batch_nums)
        return form.fill(self._client.clock.now_ms(), most)

    def _header(self, queue: MessageQueue, asked: SubscriptionData) -> PopMessageRequestHeader:
        return PopMessageRequestHeader(
            consumer_group=self._member.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            max_msg_nums=self._config.pop_batch_nums,
            invisible_time=round(self._invisible_time * 1000),
            poll_time=round(self._config.long_poll_timeout * 1000),
            born_time=self._client.clock.now_ms(),
            init_mode=pop_init_mode(self._config.consume_from),
            exp_type=asked.expression_type,
            exp=asked.sub_string,
            bname=queue.broker_name,
        )

    async def _pop_once(self, held: PopProcessQueue) -> None:
        held.popped()  # waiting counts as activity; otherwise the queue would expire
        rest = self._rest(held)
        if rest > 0:
            await held.changed(rest)
            return
        began = self._client.clock.monotonic()
        portions = await self.pop(held)
        self._client.refusals.accepted(FETCH, held.queue.broker_name)
        if portions is None:
            await held.changed(self._config.delay_after_error)
            return
        seconds = self._client.clock.monotonic() - began
        found = await self._handle_each(held, portions, seconds)
        self._loop.answered(held.queue, has_progress=found or self._loop.is_held(seconds))

    def _log_failure(self, held: PopProcessQueue, error: Exception) -> None:
        queue, group = str(held.queue), self._member.group
        if isinstance(error, RocketMQError):
            log.warning("pop_failed", group=group, queue=queue, reason=str(error))
        else:
            log.error("pop_failed", group=group, queue=queue, reason=repr(error), exc_info=error)

    def _rest(self, held: PopProcessQueue) -> float:
        """Seconds after which a queue is looked at again; 0: it is popped now."""
        return self._loop.delay(held.queue) if self._policy.may_pop(held) else LOOK_AGAIN

    async def _handle_each(self, held: PopProcessQueue, portions: Iterator[Portion], seconds: float) -> bool:
        """Hand out portion by portion; of bodies that grow, the next when the one before is consumed.

        Returns:
            Whether any message came.
        """
        found = False
        for messages, has_more in portions:
            found = found or bool(messages)
            await self._handle(held, messages, seconds)
            del messages
            while has_more and held.wait_ack_count and not held.is_dropped:
                held.popped()  # waiting counts as activity; otherwise the queue would expire
                await held.changed(LOOK_AGAIN)
        return found

    async def _handle(self, held: PopProcessQueue, messages: Sequence[MessageExt], seconds: float) -> None:
        """Hand out wanted messages and acknowledge the others. Of an unsubscribed topic, do neither."""
        if held.queue.topic not in self._member.subscriptions:
            return
        self._acknowledger.expect(messages)
        subscription = self._member.subscriptions.of(held.queue.topic)
        wanted = [
            message
            for message in messages
            if is_wanted(message, subscription) and message.reconsume_times <= self._max_times
        ]
        self._member.note_pulled(held.queue.topic, count=len(wanted), seconds=seconds)
        self._policy.rate.fetched(len(wanted))
        if wanted:
            held.found(len(wanted))
            self._consumption.take(held, wanted)
        if len(wanted) < len(messages):
            kept = {id(message) for message in wanted}
            others = [message for message in messages if id(message) not in kept]
            await asyncio.gather(*map(self._acknowledger.acknowledge, others))
