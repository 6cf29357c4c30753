"""Popping (5.x): the broker hands out messages and hides them until they are acknowledged.

Each popped queue has a task that sends one pop after the other, including long polls. A message that is not
acknowledged within the invisible time is delivered again, from its topic's retry topic, which brokers pop
together with the topic itself.
Source of the rules: DefaultMQPushConsumerImpl.popMessage, processPopResult, PullAPIWrapper.popAsync (Java
client). Ours: nothing of an unsubscribed topic is requested or handed out.
"""

import asyncio
from collections.abc import Sequence

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.refusals import FETCH
from rmqtools.engine.consumer.acknowledge import Acknowledger
from rmqtools.engine.consumer.burst_sources import FETCH_AGAIN_AFTER, PopSource
from rmqtools.engine.consumer.consume_pop import PopConsumption
from rmqtools.engine.consumer.decode_answers import AnswerDecoder, Popped
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
from rmqtools.policy.redelivery import max_reconsume_times
from rmqtools.protocol.headers.pull import PopMessageRequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, request
from rmqtools.protocol.wire.template import RequestTemplate

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
        # by queue, filter and seconds of the poll
        self._forms: dict[tuple[MessageQueue, str, str, float], RequestTemplate] = {}
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

    async def pop(self, held: PopProcessQueue) -> Popped | None:
        """Send one pop; the broker holds the answer until it has messages or the long poll ends.

        None: too many clients already wait at the broker.
        """
        wanted = self._member.subscriptions.of(held.queue.topic)
        asked = await self._client.queue_types.filter_at_broker(held.queue, wanted)
        poll_time = self._config.long_poll_timeout
        command = self._form(held.queue, asked, poll_time).fill(self._client.clock.now_ms(), self._most)
        timeout, addr = poll_time + _ANSWER_PATIENCE, self._addr(held.queue)
        answer = await self._client.remoting.invoke(addr, command, timeout=timeout)
        return self._parse(held.queue, answer, addr)

    def _addr(self, queue: MessageQueue) -> str:
        return self._client.routes.master_addr(self._client.routes.broker_name(queue))

    def _parse(self, queue: MessageQueue, answer: RemotingCommand, addr: str) -> Popped | None:
        if answer.code == ResponseCode.SUCCESS:
            self._acknowledger.note_version(queue.broker_name, answer.version)
            return self._decoder.popped(queue, answer, topic=self._member.names.plain_topic(queue.topic))
        if answer.code == ResponseCode.POLLING_FULL:
            return None
        if answer.code in _NOTHING:
            return Popped(iter(()), [], 0)
        raise BrokerError(answer.code, answer.remark, addr)

    @property
    def _most(self) -> int:
        return self._policy.rate.batch_size(self._config.pop_batch_nums)

    def _form(self, queue: MessageQueue, asked: SubscriptionData, poll_time: float) -> RequestTemplate:
        key = (queue, asked.expression_type, asked.sub_string, poll_time)
        form = self._forms.get(key)
        if form is None:
            command = request(self._header(queue, asked, poll_time))
            form = self._forms[key] = RequestTemplate(command, ("bornTime", "maxMsgNums"))
        return form

    def _header(
        self, queue: MessageQueue, asked: SubscriptionData, poll_time: float
    ) -> PopMessageRequestHeader:
        return PopMessageRequestHeader(
            consumer_group=self._member.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            max_msg_nums=self._config.pop_batch_nums,
            invisible_time=round(self._invisible_time * 1000),
            poll_time=round(poll_time * 1000),
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
        popped = await self.pop(held)
        self._client.refusals.accepted(FETCH, held.queue.broker_name)
        if popped is None:
            await held.changed(self._config.delay_after_error)
            return
        seconds = self._client.clock.monotonic() - began
        found = await self._handle_each(held, popped, seconds)
        self._loop.answered(held.queue, has_progress=found or self._loop.is_held(seconds))
        if self._may_burst(held, popped):
            await self._burst_of(held)

    def _may_burst(self, held: PopProcessQueue, popped: Popped) -> bool:
        """Return whether a listener's thread may pop the queue: the broker has at least another full pop."""
        if popped.rest < self._config.pop_batch_nums or self._policy.rate.is_limited or held.is_dropped:
            return False
        if self._client.clock.monotonic() < held.burst_from:
            return False
        is_known = self._acknowledger.takes_many(held.queue.broker_name)
        return is_known and self._consumption.may_burst() and self._policy.may_pop(held)

    async def _burst_of(self, held: PopProcessQueue) -> None:
        """Let a listener's thread pop the queue, and handle the answer that it could not use."""
        wanted = self._member.subscriptions.of(held.queue.topic)
        asked = await self._client.queue_types.filter_at_broker(held.queue, wanted)
        source = self._source(held, wanted, self._form(held.queue, asked, 0.0))
        self._consumption.add(source)
        await source.returned
        if source.is_unfit and not source.messages:
            held.burst_from = self._client.clock.monotonic() + FETCH_AGAIN_AFTER
        popped = source.popped
        if source.numbers:
            popped = self._parse(held.queue, await asyncio.to_thread(self._late_answer, source), source.addr)
        if source.error is not None:
            raise source.error
        if popped is not None:
            await self._handle_each(held, popped, 0.0)

    def _late_answer(self, source: PopSource) -> RemotingCommand:
        """Wait on a thread for the messages that a broker has been asked for; it has hidden them."""
        assert source.connection is not None
        try:
            return source.connection.finish(source.numbers[-1], _ANSWER_PATIENCE)
        finally:
            self._client.remoting.pool.give_back(source.connection)

    def _source(self, held: PopProcessQueue, wanted: SubscriptionData, form: RequestTemplate) -> PopSource:
        queue = held.queue
        most = self._most
        subscriptions = self._member.subscriptions
        topic = self._member.names.plain_topic(queue.topic)

        def note_pops(count: int, times: int, seconds: float) -> None:
            held.popped()
            self._member.note_pulled(queue.topic, count=count, pulls=times, seconds=seconds)

        return PopSource(
            held=held,
            topic=topic,
            addr=self._addr(queue),
            note_fetched=note_pops,
            may_go_on=lambda: self._policy.may_pop(held) and subscriptions.of(queue.topic) == wanted,
            returned=asyncio.get_running_loop().create_future(),
            request=lambda: form.fill(0, most),  # born now, by the broker's clock
            acknowledge=self._consumption.acknowledgement,
            decode=lambda answer: self._decoder.popped(queue, answer, topic=topic),
            are_wanted=lambda messages: len(self._wanted(messages, wanted)) == len(messages),
        )

    def _log_failure(self, held: PopProcessQueue, error: Exception) -> None:
        queue, group = str(held.queue), self._member.group
        if isinstance(error, RocketMQError):
            log.warning("pop_failed", group=group, queue=queue, reason=str(error))
        else:
            log.error("pop_failed", group=group, queue=queue, reason=repr(error), exc_info=error)

    def _rest(self, held: PopProcessQueue) -> float:
        """Seconds after which a queue is looked at again; 0: it is popped now."""
        return self._loop.delay(held.queue) if self._policy.may_pop(held) else LOOK_AGAIN

    async def _handle_each(self, held: PopProcessQueue, popped: Popped, seconds: float) -> bool:
        """Hand out portion by portion; of bodies that grow, the next when the one before is consumed.

        Returns:
            Whether any message came.
        """
        if popped.broken:
            tell = self._acknowledger.acknowledge_broken
            plain = self._member.names.plain_topic(held.queue.topic)
            await asyncio.gather(*(tell(plain, info) for info in popped.broken))
        found = False
        for messages, has_more in popped.portions:
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
        wanted = self._wanted(messages, self._member.subscriptions.of(held.queue.topic))
        self._member.note_pulled(held.queue.topic, count=len(wanted), seconds=seconds)
        self._policy.rate.fetched(len(wanted))
        if wanted:
            held.found(len(wanted))
            self._consumption.consume(held, wanted)
        if len(wanted) < len(messages):
            kept = {id(message) for message in wanted}
            others = [message for message in messages if id(message) not in kept]
            await asyncio.gather(*map(self._acknowledger.acknowledge, others))

    def _wanted(self, messages: Sequence[MessageExt], subscription: SubscriptionData) -> list[MessageExt]:
        """Return the messages that listeners are to have."""
        most = self._max_times
        if not subscription.tags_set:
            return [one for one in messages if one.reconsume_times <= most]
        return [one for one in messages if is_wanted(one, subscription) and one.reconsume_times <= most]
