"""Receives messages for a simple consumer: pops the brokers of its topics in turn, and waits for messages.

A place is a topic at one broker. One place is popped with a long poll. Of several, each is popped at once in
turn; if none has a message, a NOTIFICATION request at each place returns when there is one, so that no place
waits behind the long poll of another, and no answer is lost.
Source of the rules: ReceiveMessageActivity, PopMessageResultFilterImpl,
ProducerProcessor.forwardMessageToDeadLetterQueue (proxy). Ours: the proxy pops one place a call, with a long
poll, and its retry of a lost answer is left to its client.
"""

import asyncio
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from rmqtools.config.simple_consumer import MOST_MESSAGES, SimpleConsumerConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.consumer.acknowledge import Acknowledger
from rmqtools.engine.consumer.decode_answers import AnswerDecoder
from rmqtools.engine.consumer.receipts import Receipts
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.group.subscriptions import Subscriptions
from rmqtools.engine.reading.range_filter import is_wanted
from rmqtools.errors import (
    BrokerError,
    ClientStateError,
    ConfigError,
    ConnectionLostError,
    RemotingTimeoutError,
    RocketMQError,
    TopicNotFoundError,
    UnsupportedError,
)
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.model.names import without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.assignment import pop_init_mode
from rmqtools.policy.endpoint.features import SIMPLE_CONSUMING
from rmqtools.policy.publish import is_static
from rmqtools.policy.redelivery import NO_MORE_TRIES, max_reconsume_times
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.pop_extra_info import parse_extra_info
from rmqtools.protocol.headers.pull import (
    NotificationRequestHeader,
    NotificationResponseHeader,
    PopMessageRequestHeader,
)
from rmqtools.protocol.messages.inner_batch import is_inner_batch
from rmqtools.protocol.wire.command import RemotingCommand, request

log = get_logger(__name__)

_ALL_QUEUES = -1
_NOTHING = (ResponseCode.POLLING_TIMEOUT, ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_FULL)
_ANSWER_PATIENCE = 10.0  # seconds beyond the long poll; upstream PullAPIWrapper.popAsync
_ASK_AGAIN = 0.5  # seconds, where a broker answers a long poll at once although it has no message
_TRIES = 3  # of a pop in order of which the answer is lost
_LOST = (RemotingTimeoutError, ConnectionLostError)
_NO_TIMER_WHEEL = "timerWheelEnable is false"


class Receive(NamedTuple):
    """The arguments of one call; ``attempt_id`` marks its pops in order."""

    max_messages: int
    invisible_duration: float
    wait: float
    attempt_id: str | None


class Receiver:
    """Receives the messages of one consumer."""

    def __init__(
        self,
        client: ClientCore,
        config: SimpleConsumerConfig,
        subscriptions: Subscriptions,
        *,
        group: str,
        receipts: Receipts,
    ) -> None:
        self._client = client
        self._config = config
        self._subscriptions = subscriptions
        self._group = group
        self._receipts = receipts
        self._max_times = max_reconsume_times(config.max_reconsume_times)
        self._acknowledger = Acknowledger(client, group)
        self._send_back = SendBack(client, group, max_reconsume_times=0)  # each one is a dead letter
        self._decoder = AnswerDecoder(
            lambda _: 0, max_messages=MOST_MESSAGES, max_body_bytes=config.max_decompressed_bytes
        )
        self._turn = 0

    def wanted(self, max_messages: int, invisible_duration: float, wait: float) -> Receive:
        """Return the arguments of a call."""
        attempt_id = str(uuid.uuid4()) if self._config.fifo else None
        return Receive(max_messages, invisible_duration, wait, attempt_id)

    async def receive(self, asked: Receive) -> list[MessageExt]:
        """Return messages as soon as a place has some; after ``wait`` seconds none.

        Raises:
            ClientStateError: nothing is subscribed.
            RocketMQError: every place refused, or did not answer; the error of the last one.
        """
        clock = self._client.clock
        deadline = clock.monotonic() + asked.wait
        while True:
            places = await self._places()
            left = max(0.0, deadline - clock.monotonic())
            poll = left if len(places) == 1 else 0.0
            began = clock.monotonic()
            if messages := await self._sweep(places, asked, poll):
                return messages
            left = deadline - clock.monotonic()
            if left <= 0:
                return []
            if len(places) > 1:
                await self._await_message(places, asked, left)
            elif clock.monotonic() - began < _ASK_AGAIN:
                await asyncio.sleep(min(left, _ASK_AGAIN))

    async def _places(self) -> list[MessageQueue]:
        """Return the places in the order of this turn: the next turn begins one place later.

        Raises:
            ClientStateError: nothing is subscribed.
            TopicNotFoundError: no topic has a route.
            ConfigError: a topic is static.
        """
        topics = self._subscriptions.topics()
        if not topics:
            raise ClientStateError(
                f"group {self._config.group!r} subscribes to nothing: call subscribe before receive"
            )
        found: dict[MessageQueue, None] = {}
        for topic in topics:
            for queue in await self._subscriptions.find_queues(topic) or ():
                if is_static(queue):
                    raise ConfigError(
                        f"topic {queue.topic!r} is static: brokers do not pop it; use PushConsumer"
                    )
                found[MessageQueue(queue.topic, queue.broker_name, _ALL_QUEUES)] = None
        if not found:
            raise TopicNotFoundError(
                f"topics {sorted(topics)}: no name server has a route that may be read: create them"
            )
        places = list(found)
        self._turn = (self._turn + 1) % len(places)
        return places[self._turn :] + places[: self._turn]

    async def _sweep(self, places: Sequence[MessageQueue], asked: Receive, poll: float) -> list[MessageExt]:
        """Pop places one after the other, until one has a message. An error counts if all fail."""
        failed: RocketMQError | None = None
        failures = 0
        for place in places:
            try:
                if messages := await self._pop(place, asked, poll):
                    return messages
            except RocketMQError as error:
                log.warning("receive_failed", queue=str(place), reason=str(error))
                failed, failures = error, failures + 1
        if failed is not None and failures == len(places):
            raise failed
        return []

    async def _pop(self, place: MessageQueue, asked: Receive, poll: float) -> list[MessageExt]:
        """Pop one place, and keep of its answer the messages that are wanted."""
        addr = self._client.routes.master_addr(place.broker_name)
        await self._client.versions.check(SIMPLE_CONSUMING, broker_name=place.broker_name, addr=addr)
        wanted = self._subscriptions.of(place.topic)
        sent = await self._client.queue_types.filter_at_broker(place, wanted)
        answer = await self._ask(addr, self._header(place, sent, asked, poll), poll)
        if answer.code in _NOTHING:
            return []
        if answer.code != ResponseCode.SUCCESS:
            raise self._refusal(place.broker_name, addr, answer)
        topic = without_this_namespace(place.topic, self._client.config.namespace)
        popped = self._decoder.popped(place, answer, topic=topic, order=self._config.fifo)
        messages = [message for portion in popped.portions for message in portion.messages]
        if messages:
            self._receipts.received(parse_extra_info(messages[0].properties[PROPERTY_POP_CK]))
        for info in popped.broken:
            await self._acknowledger.acknowledge_broken(topic, info)
        return await self._chosen(place, messages, wanted)

    def _header(
        self, place: MessageQueue, sent: SubscriptionData, asked: Receive, poll: float
    ) -> PopMessageRequestHeader:
        return PopMessageRequestHeader(
            consumer_group=self._group,
            topic=place.topic,
            queue_id=place.queue_id,
            max_msg_nums=asked.max_messages,
            invisible_time=round(asked.invisible_duration * 1000),
            poll_time=round(poll * 1000),
            born_time=0,  # the broker's own time: clocks may differ by more than a short poll
            init_mode=pop_init_mode(self._config.consume_from),
            exp_type=sent.expression_type,
            exp=sent.sub_string,
            order=self._config.fifo,
            attempt_id=asked.attempt_id,
            bname=place.broker_name,
        )

    async def _ask(self, addr: str, header: PopMessageRequestHeader, poll: float) -> RemotingCommand:
        """Send a pop. In order, send it again if its answer is lost: the attempt id gets its messages."""
        tries = _TRIES if header.order else 1
        while True:
            tries -= 1
            try:
                return await self._client.remoting.invoke(
                    addr, request(header), timeout=poll + _ANSWER_PATIENCE
                )
            except _LOST as error:
                if not tries:
                    raise
                log.info("pop_asked_again", addr=addr, attempt_id=header.attempt_id, reason=str(error))

    def _refusal(self, broker_name: str, addr: str, answer: RemotingCommand) -> BrokerError:
        if _NO_TIMER_WHEEL not in (answer.remark or ""):
            return BrokerError(answer.code, answer.remark, addr)
        return UnsupportedError(
            f"{SIMPLE_CONSUMING.name}: {broker_name} at {addr} has timerWheelEnable=false, so it cannot hide "
            "messages; set timerWheelEnable=true in its settings and restart it",
            SIMPLE_CONSUMING.name,
            addr,
            answer.remark,
        )

    async def _chosen(
        self, place: MessageQueue, messages: Sequence[MessageExt], wanted: SubscriptionData
    ) -> list[MessageExt]:
        """Return the messages to hand out; acknowledge those not wanted, and bury those tried too often.

        Raises:
            ConfigError: the topic has stored batches, which are acknowledged as a whole only.
        """
        kept, unwanted, dead = [], [], []
        for message in messages:
            if is_inner_batch(message.sys_flag):
                raise ConfigError(
                    f"topic {message.topic!r} has the queue type BatchCQ: its batches cannot be acknowledged "
                    "message by message; use PushConsumer"
                )
            if not is_wanted(message, wanted):
                unwanted.append(message)
            elif message.reconsume_times > self._max_times:
                dead.append(message)
            else:
                kept.append(message)
        if unwanted:
            await self._acknowledger.acknowledge_all(unwanted)
        if dead:
            await asyncio.gather(*(self._bury(place, message) for message in dead))
        return kept

    async def _bury(self, place: MessageQueue, message: MessageExt) -> None:
        """Make a dead letter of a message; if that fails, it comes again and is tried again."""
        if await self._send_back.send(message, NO_MORE_TRIES, queue=place):
            await self._acknowledger.acknowledge(message)

    async def _await_message(self, places: Sequence[MessageQueue], asked: Receive, seconds: float) -> None:
        """Wait until a place has a message, for at most ``seconds``.

        A place that refuses ends the wait too, and is popped again.
        """
        asking = [asyncio.ensure_future(self._is_ready(place, asked, seconds)) for place in places]
        try:
            for done in asyncio.as_completed(asking):
                if await done:
                    return
        finally:
            for one in asking:
                one.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    async def _is_ready(self, place: MessageQueue, asked: Receive, seconds: float) -> bool:
        """Wait for a message at one place; False: the time is over."""
        sent = self._subscriptions.of(place.topic)
        header = NotificationRequestHeader(
            consumer_group=self._group,
            topic=place.topic,
            queue_id=place.queue_id,
            poll_time=round(seconds * 1000),
            born_time=0,
            order=self._config.fifo,
            attempt_id=asked.attempt_id,
            exp_type=sent.expression_type,
            exp=sent.sub_string,
            bname=place.broker_name,
        )
        try:
            addr = self._client.routes.master_addr(place.broker_name)
            answer = await self._client.remoting.invoke(
                addr, request(header), timeout=seconds + _ANSWER_PATIENCE
            )
            self._client.remoting.checked(answer, header.code, addr)
            told = decode_header(NotificationResponseHeader, answer.ext_fields)
        except RocketMQError as error:
            log.info("notification_failed", queue=str(place), reason=str(error))
            await asyncio.sleep(min(seconds, _ASK_AGAIN))
            return True
        if not told.has_msg:
            await asyncio.sleep(_ASK_AGAIN if told.polling_full else 0)
        return told.has_msg or told.polling_full
