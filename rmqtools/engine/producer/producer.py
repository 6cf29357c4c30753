"""A producer: a client in a producer group, and the parts that send messages."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config import ProducerConfig
from rmqtools.engine.connection.background import Closing
from rmqtools.engine.connection.client import ClientCore, local_address
from rmqtools.engine.producer.accumulator import ProduceAccumulator
from rmqtools.engine.producer.encode_send import FRAMING_BYTES, Encoder
from rmqtools.engine.producer.fault_detector import ROUND_INTERVAL, detect_once
from rmqtools.engine.producer.request_reply import RequestReply
from rmqtools.engine.producer.send import QueueChoice, Sender
from rmqtools.engine.producer.send_many import ManySender, ParcelLine
from rmqtools.engine.producer.send_order import QueueLines
from rmqtools.engine.producer.send_way import SendWay
from rmqtools.engine.producer.trace import TraceDispatcher
from rmqtools.errors import MessageRejectedError, RocketMQError, SendError, SendManyError
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.names import with_namespace
from rmqtools.model.parcel import MsgIds, Parcel, ParcelResult
from rmqtools.model.queue import MessageQueue
from rmqtools.model.reply import ReplyMessage
from rmqtools.model.result import BrokerHealth, SendResult
from rmqtools.observer import Identity, Observer
from rmqtools.policy.endpoint.features import REQUEST_REPLY
from rmqtools.policy.selectors import SelectMessageQueueByHash
from rmqtools.policy.validate import (
    MAX_GROUP_LENGTH,
    Checked,
    check_batch,
    check_message,
    check_messages,
    check_name,
)
from rmqtools.protocol.headers import RecallMessageRequestHeader, RecallMessageResponseHeader, decode_header
from rmqtools.protocol.messages.message_id import UniqueIdGenerator
from rmqtools.protocol.messages.recall_handle import parse_recall_handle
from rmqtools.protocol.wire.command import request


class ProducerCore:
    """The coroutines behind :class:`rmqtools.aio.Producer`, which documents them."""

    def __init__(self, config: ProducerConfig, *, clock: Clock = SYSTEM_CLOCK) -> None:
        check_name("producer group", config.group, MAX_GROUP_LENGTH)
        self.config = config
        self.group = with_namespace(config.group, config.namespace)
        self.client = ClientCore(config, clock=clock)
        self._ids = UniqueIdGenerator(
            local_address(config.name_servers[0]), os.getpid(), random.getrandbits(31)
        )
        self.encoder = Encoder(config, self._ids.next, clock.now_ms, take_ids=self._ids.take)
        self.sender = Sender(self.client, config)
        self._many = ManySender(self.sender, self.encoder, config)
        self._accumulator = (
            ProduceAccumulator(self.sender, self.encoder, config, clock) if config.linger else None
        )
        self._requests = RequestReply(self.client)
        self._tracer = TraceDispatcher(self.client, config, self.encoder) if config.enable_trace else None
        # whether sends run on the loop only: messages are traced there, and share requests there
        self.needs_loop = self._tracer is not None or self._accumulator is not None
        self._closing = Closing(f"producer {self.client.client_id}", *self._closing_steps())
        self._observer = self.client.observer
        self._identity = Identity(config.group, self.client.client_id, config.namespace)
        self._order_entry = asyncio.Lock()
        self._lines = QueueLines()

    async def start(self) -> None:
        """See :meth:`rmqtools.aio.Producer.start`."""
        self.client.start()
        self.client.groups.producers.add(self.group)
        if self.config.send_latency_fault_enable and self.config.start_detector_enable:
            self.client.background.spawn_repeated(
                "fault_detector", ROUND_INTERVAL, partial(detect_once, self.client, self.sender.tolerance)
            )
        if self._tracer is not None:
            self.client.background.spawn_loop("trace", self._tracer.run)

    async def close(self) -> None:
        """See :meth:`rmqtools.aio.Producer.close`."""
        self.client.refuse_calls()
        await self._closing.wait()

    def _closing_steps(self) -> list[Callable[[], Awaitable[None]]]:
        flush = [part.close for part in (self._accumulator, self._tracer) if part is not None]
        return [self._requests.close, *flush, self._leave_group, self.client.close]

    async def _leave_group(self) -> None:
        if self.group in self.client.groups.producers:
            await self.client.unregister_producer(self.group)

    async def send(
        self, message: Message, *, choice: QueueChoice, timeout: float | None, way: SendWay | None = None
    ) -> SendResult:
        """See :meth:`rmqtools.aio.Producer.send`. ``way``: None: on the client's loop."""
        size = self._check(message)
        if self._observer is not None:
            place = partial(self._place, choice=choice, timeout=timeout, way=way)
            return (await self._observed(self._observer, [message], place))[0]
        if self._accumulator is not None:
            joined = self._accumulator.send(message, choice, timeout, size)
            if joined is not None:
                result = await joined
                return result if self._tracer is None else self._traced([message], [result])[0]
        outgoing = self.encoder.encode(message)  # as _place, without one more coroutine
        placed, attempts = await self.sender.place_whole(
            outgoing, choice=choice, message=message, timeout=timeout, way=way
        )
        results = placed.results(attempts)
        return results[0] if self._tracer is None else self._traced([message], results)[0]

    def join(
        self, message: Message, choice: QueueChoice, timeout: float | None
    ) -> asyncio.Future[SendResult] | None:
        """Begin a send that needs no coroutine: its message waits for others. None: call :meth:`send`."""
        if self._accumulator is None or self._observer is not None or self._tracer is not None:
            return None
        if choice.selector is not None:
            return None
        joined = self._accumulator.send(message, choice, timeout, self._check(message))
        assert joined is None or isinstance(joined, asyncio.Future)  # only selectors need a coroutine
        return joined

    async def _place(
        self, messages: Sequence[Message], choice: QueueChoice, timeout: float | None, way: SendWay | None
    ) -> list[SendResult]:
        """The send of one message that is observed."""
        (message,) = messages
        if self._accumulator is not None:
            joined = self._accumulator.send(message, choice, timeout)
            if joined is not None:
                return self._traced([message], [await joined])
        outgoing = self.encoder.encode(message)
        placed, attempts = await self.sender.place_whole(
            outgoing, choice=choice, message=message, timeout=timeout, way=way
        )
        return self._traced([message], placed.results(attempts))

    async def _observed(
        self,
        observer: Observer,
        messages: Sequence[Message],
        send: Callable[[Sequence[Message]], Awaitable[list[SendResult]]],
    ) -> list[SendResult]:
        with observer.sending(messages, self._identity) as sending:
            results = await send(sending.messages)
            sending.stored(results)
            return results

    async def send_oneway(self, message: Message, *, choice: QueueChoice) -> None:
        """See :meth:`rmqtools.aio.Producer.send_oneway`."""
        self._check(message)
        if self._observer is None:
            await self.sender.place_oneway(self.encoder.encode(message), choice=choice, message=message)
            return

        async def place(messages: Sequence[Message]) -> list[SendResult]:
            (changed,) = messages
            await self.sender.place_oneway(self.encoder.encode(changed), choice=choice, message=changed)
            return []

        await self._observed(self._observer, [message], place)

    async def send_orderly(self, message: Message, *, timeout: float | None) -> SendResult:
        """See :meth:`rmqtools.aio.Producer.send_orderly`."""
        self._check(message)
        if not message.sharding_key:
            raise MessageRejectedError("send_orderly needs a sharding_key: messages of one key stay in order")
        limit = self.config.send_timeout if timeout is None else timeout
        deadline = self.client.clock.monotonic() + limit
        try:
            async with asyncio.timeout(limit):
                async with self._order_entry:  # in order of arrival, even while the route is fetched
                    info = await self.sender.publish_info(message.topic)
                queue = SelectMessageQueueByHash()(info.queues, message, message.sharding_key)
                shares = self._accumulator is not None and not message.is_alone
                turn = asyncio.Lock() if shares else self._lines.of(queue)  # its line there keeps the order
                await turn.acquire()
        except TimeoutError as error:
            if isinstance(error, RocketMQError):
                raise
            raise SendError(f"its turn did not come within {limit} s: nothing was sent") from error
        try:
            left = max(0.0, deadline - self.client.clock.monotonic())
            return await self.send(message, choice=QueueChoice(queue), timeout=left)
        finally:
            turn.release()

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None,
        timeout: float | None,
        way: SendWay | None = None,
    ) -> list[SendResult]:
        """See :meth:`rmqtools.aio.Producer.send_batch`. ``way``: None: on the client's loop."""
        self.client.check_started()
        are_ordinary, sizes = self._check_all(messages)
        check_batch(messages, are_ordinary=are_ordinary)

        def send(changed: Sequence[Message], sizes: list[int] | None = None) -> Awaitable[list[SendResult]]:
            return self._tracing(changed, self._many.send_batch(changed, queue, timeout, way, sizes))

        if self._observer is None:
            return await send(messages, sizes)
        return await self._observed(self._observer, messages, send)

    async def send_many(self, messages: Sequence[Message], *, timeout: float | None) -> list[SendResult]:
        """See :meth:`rmqtools.aio.Producer.send_many`."""
        self.client.check_started()
        _, sizes = self._check_all(messages)
        if self._observer is None:
            return await self._tracing(messages, self._many.send_many(messages, timeout, sizes))
        return await self._observed(
            self._observer,
            messages,
            lambda changed: self._tracing(changed, self._many.send_many(changed, timeout)),
        )

    def parcel_line(self) -> ParcelLine:
        """A line: several calls of :meth:`send_parcels` with it behave like one call with all their parcels.

        The calls may overlap and share ``max_in_flight``. After a failed or cancelled call no parcel of the
        line is started any more. A call refused with ``MessageRejectedError`` does not affect the line.
        """
        return self._many.parcel_line()

    async def send_parcels(
        self, parcels: Sequence[Parcel], *, line: ParcelLine | None = None, timeout: float | None = None
    ) -> list[ParcelResult | SendError]:
        """Send encoded messages, one request per parcel, as :meth:`send_many` sends its batches.

        For code that makes batches without a Message per row (``rmqtools.arrow``): only single messages are
        checked. After the first parcel that cannot be sent no further ones are started.

        Args:
            parcels: parcels of one queue, in their order in the queue. Parcels of several queues are sent
                concurrently if they alternate.
            line: of :meth:`parcel_line`, for several calls; None: one for this call.
            timeout: seconds for all attempts of one parcel; None: ``send_timeout``.

        Returns:
            For each parcel its place in the queue, or its error.

        Raises:
            MessageRejectedError: a single message cannot be sent, or traces are wanted; nothing was sent.
            TopicNotFoundError, PermissionDeniedError: there is no queue to send to; nothing was sent.
        """
        self.client.check_started()
        for parcel in parcels:
            if parcel.message is not None:
                check_message(parcel.message, self.config.max_message_bytes)
        if self._tracer is not None:
            raise MessageRejectedError("parcels cannot be traced: set enable_trace=False, or use send_many")
        return await self._many.send_parcels(parcels, line, timeout)

    async def reserve_msg_ids(self, count: int) -> MsgIds:
        """Reserve unique ids for messages that are encoded elsewhere, at most 65536.

        Source of the rule: MessageClientIDSetter.createUniqID (Java client).
        """
        return self._ids.take(count, self.client.clock.now_ms())

    async def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.Producer.fetch_publish_queues`."""
        self.client.check_started()
        return list((await self.sender.publish_info(topic)).queues)

    async def request(self, message: Message, *, choice: QueueChoice, timeout: float | None) -> MessageExt:
        """See :meth:`rmqtools.aio.Producer.request`."""
        self._check(message)
        _refuse_replies([message])
        await self.sender.publish_info(message.topic)
        self.client.endpoint.require(REQUEST_REPLY)

        async def place(properties: Mapping[str, str], seconds: float) -> None:
            async def send(messages: Sequence[Message]) -> list[SendResult]:
                outgoing = self.encoder.encode(messages[0], system_properties=properties)
                return await self.sender.place(outgoing, choice=choice, message=messages[0], timeout=seconds)

            sending = (
                send([message]) if self._observer is None else self._observed(self._observer, [message], send)
            )
            self._traced([message], await sending)

        limit = self.config.send_timeout if timeout is None else timeout
        return await self._requests.request(message, place, limit)

    async def recall(self, topic: str, recall_handle: str) -> str:
        """See :meth:`rmqtools.aio.Producer.recall`."""
        self.client.check_started()
        handle = parse_recall_handle(recall_handle)
        await self.sender.publish_info(topic)
        header = RecallMessageRequestHeader(
            producer_group=self.group,
            topic=with_namespace(topic, self.config.namespace),
            recall_handle=recall_handle,
            bname=handle.broker_name,
        )
        addr = self.client.routes.master_addr(handle.broker_name)
        answer = await self.client.remoting.invoke_ok(addr, request(header))
        return decode_header(RecallMessageResponseHeader, answer.ext_fields).msg_id

    def broker_health(self) -> Mapping[str, BrokerHealth]:
        """See :meth:`rmqtools.aio.Producer.broker_health`."""
        return self.sender.tolerance.health(round(self.client.clock.monotonic() * 1000))

    async def _tracing(
        self, messages: Sequence[Message], sending: Awaitable[list[SendResult]]
    ) -> list[SendResult]:
        """Trace the messages that a send of many has stored, even if others failed."""
        try:
            return self._traced(messages, await sending)
        except SendManyError as error:
            for message, result in zip(messages, error.results, strict=True):
                if isinstance(result, SendResult):
                    self._traced([message], [result])
            raise

    def _traced(self, messages: Sequence[Message], results: list[SendResult]) -> list[SendResult]:
        if self._tracer is not None:
            self._tracer.stored(messages, results)
        return results

    def _check_all(self, messages: Sequence[Message]) -> Checked:
        checked = check_messages(messages, self.config.max_message_bytes, FRAMING_BYTES)
        if not checked.are_ordinary:
            _refuse_replies(messages)
        return checked

    def _check(self, message: Message) -> int | None:
        self.client.check_started()
        return check_message(message, self.config.max_message_bytes)


def _refuse_replies(messages: Sequence[Message]) -> None:
    """A reply must be sent alone: batches and requests have no room for its properties."""
    if any(isinstance(message, ReplyMessage) for message in messages):
        raise MessageRejectedError("a reply goes out by send or send_oneway only")
