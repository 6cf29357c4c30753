"""A producer: a client in a producer group, and the parts that send messages.

One file because it is one class, with the docstrings that users read.
"""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from rmqtools.config import ProducerConfig
from rmqtools.config.client import check_config
from rmqtools.config.text import check_timeout
from rmqtools.engine.blocking_form import CLOSE_NOTE, START_NOTE, blocking
from rmqtools.engine.connection.background import Closing
from rmqtools.engine.connection.client import ClientCore, local_address
from rmqtools.engine.connection.connected import Connected
from rmqtools.engine.producer.accumulator import ProduceAccumulator
from rmqtools.engine.producer.encode_send import FRAMING_BYTES, Encoder
from rmqtools.engine.producer.in_flight import InFlight
from rmqtools.engine.producer.request_reply import RequestReply
from rmqtools.engine.producer.send import QueueChoice, Sender, Sending, queue_choice, queue_locks
from rmqtools.engine.producer.send_many import ManySender
from rmqtools.engine.producer.send_way import SendWay
from rmqtools.engine.producer.trace import SendTraces
from rmqtools.errors import MessageRejectedError, RocketMQError, SendError, SendManyError
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.names import with_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.model.reply import ReplyMessage
from rmqtools.model.result import BrokerHealth, SendResult, SendsInFlight
from rmqtools.observer import Identity, Observer
from rmqtools.policy.endpoint.features import REQUEST_REPLY
from rmqtools.policy.fault import DETECT_ROUND_INTERVAL
from rmqtools.policy.selectors import MessageQueueSelector, SelectMessageQueueByHash
from rmqtools.policy.validate import (
    MAX_GROUP_LENGTH,
    Checked,
    check_batch,
    check_list,
    check_message,
    check_messages,
    check_name,
)
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.send import RecallMessageRequestHeader, RecallMessageResponseHeader
from rmqtools.protocol.messages.message_id import UniqueIdGenerator
from rmqtools.protocol.messages.recall_handle import parse_recall_handle
from rmqtools.protocol.wire.command import request


class Producer(Connected):
    """A producer. It takes the queues in turn; after a failed attempt, a send takes another broker.

    Use ``async with``, or call start and close.

    Raises:
        ConfigError: by the constructor, for settings that are not valid.
    """

    __module__ = "rmqtools.aio"
    _compare_loops_themselves = frozenset({"send"})

    def __init__(self, config: ProducerConfig) -> None:
        check_config(type(self).__name__, config, ProducerConfig)
        check_name("producer group", config.group, MAX_GROUP_LENGTH)
        self._config = config
        self._group = with_namespace(config.group, config.namespace)
        self._client = ClientCore(config)
        self._ids = UniqueIdGenerator(local_address(config), os.getpid(), random.getrandbits(31))
        self._encoder = Encoder(
            config, self._ids.next, self._client.clock.now_ms, reserve_ids=self._ids.reserve
        )
        self._sender = Sender(self._client, config)
        self._many = ManySender(
            self._client, config, sender=self._sender, encoder=self._encoder, ids=self._ids
        )
        self._accumulator = (
            ProduceAccumulator(self._sender, self._encoder, config, self._client.clock)
            if config.linger
            else None
        )
        self._in_flight = (
            InFlight(config, self._client.clock) if config.enable_backpressure_for_async_mode else None
        )
        self._requests = RequestReply(self._client)
        self._traces = SendTraces(self._client, config, self._encoder) if config.enable_trace else None
        # whether sends run on the loop only: messages are traced there, and share requests there
        self._needs_loop = self._traces is not None or self._accumulator is not None
        self._closing = Closing(f"producer {self._client.client_id}", *self._closing_steps())
        self._observer = self._client.observer
        self._identity = Identity(config.group, self._client.client_id, config.namespace)
        self._order_entry = asyncio.Lock()
        self._queue_locks = queue_locks()

    @property
    def config(self) -> ProducerConfig:
        """The settings given to the constructor."""
        return self._config

    @property
    def client_id(self) -> str:
        """The name of this client at brokers: ``ip@instance``."""
        return self._client.client_id

    @blocking("base", note=START_NOTE)
    async def start(self) -> None:
        """Start the background tasks: route polls and heartbeats. Connections are made when needed."""
        self._client.start()
        self._client.groups.producers.add(self._group)
        if self._config.send_latency_fault_enable and self._config.start_detector_enable:
            probe = self._sender.probe_brokers
            self._client.background.spawn_repeated("fault_detector", DETECT_ROUND_INTERVAL, probe)
        if self._traces is not None:
            self._client.background.spawn_loop("trace", self._traces.dispatcher.run)

    @blocking(
        "base",
        note="Sends under way on other threads end with an error; with ``linger`` they are completed. "
        + CLOSE_NOTE,
    )
    async def close(self) -> None:
        """Leave the producer group and close all connections. Every call waits until that is done.

        Requests that wait for replies end with a ClientStateError. Messages that wait because of ``linger``
        are sent, for ``send_timeout`` at most. Cancelling a call ends only its waiting.
        """
        self._client.refuse_calls()
        if self._in_flight is not None:
            self._in_flight.close()
        await self._closing.wait()

    def _closing_steps(self) -> list[Callable[[], Awaitable[None]]]:
        traces = None if self._traces is None else self._traces.dispatcher
        flush = [part.close for part in (self._accumulator, traces) if part is not None]
        return [self._requests.close, *flush, self._leave_group, self._client.close]

    async def _leave_group(self) -> None:
        if self._group in self._client.groups.producers:
            await self._client.unregister_producer(self._group)

    @blocking("sends", note="A selector runs on the loop thread: it must not block.")
    async def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Send one message and wait until a broker has stored it.

        With ``linger``, messages that are in flight to a topic at the same time share requests.

        Args:
            message: the message to send.
            queue: send to this queue, one attempt only. None: queues in turn; each retry takes a queue of
                another broker.
            selector: chooses the queue, instead of ``queue``: called with all queues, the message and
                ``arg``. One attempt only.
            arg: passed to the selector.
            timeout: seconds for all attempts together; None: ``send_timeout``.

        Returns:
            Where it was stored. ``status`` says whether the broker flushed and replicated it as configured;
            ``may_be_duplicated`` whether an earlier attempt may have stored it too.

        Raises:
            MessageRejectedError: the message is not valid; nothing was sent.
            TopicNotFoundError, PermissionDeniedError, RemotingConnectError: there is no queue to send to;
                nothing was sent.
            UnsupportedError: a delay, a priority or a reply that the broker, or a proxy in front of it, does
                not know; nothing was sent.
            UnknownOutcomeError: no answer came, so the message may or may not be stored.
            BackPressureError: too much is in flight, with ``enable_backpressure_for_async_mode``; nothing was
                sent. A blocking ``send`` is not counted and never raises it.
            SendError: the message is not stored; ``attempts`` says why.

        Source of the rule: DefaultMQProducer.send (Java client).
        """
        if self._loop is not asyncio.get_running_loop():
            self._check_loop()
        choice = queue_choice(queue, selector, arg)
        if self._in_flight is None:
            return await self._begin(message, choice, timeout)
        self._check(message, timeout)  # before it waits
        async with self._in_flight.room(message, timeout) as left:
            return await self._begin(message, choice, left)

    async def _send(self, message: Message, choice: QueueChoice, timeout: float | None) -> SendResult:
        return await self._begin(message, choice, timeout)

    def _begin(
        self, message: Message, choice: QueueChoice, timeout: float | None, way: SendWay | None = None
    ) -> Sending:
        """Begin the send of one message: a future if it waits for others already, else a coroutine.

        ``way``: None: on the client's loop.
        """
        size = self._check(message, timeout)
        if self._observer is None and self._traces is None:
            return self._deliver(message, choice, timeout, way, size)
        return self._watched(message, choice, timeout, way)

    async def _watched(
        self, message: Message, choice: QueueChoice, timeout: float | None, way: SendWay | None
    ) -> SendResult:
        """Send a message that is observed or traced. Nothing begins before this runs."""

        async def deliver(messages: Sequence[Message]) -> list[SendResult]:
            (changed,) = messages
            return self._traced(messages, [await self._deliver(changed, choice, timeout, way)])

        sending = (
            deliver([message])
            if self._observer is None
            else self._observed(self._observer, [message], deliver)
        )
        return (await sending)[0]

    def _deliver(
        self,
        message: Message,
        choice: QueueChoice,
        timeout: float | None,
        way: SendWay | None,
        size: int | None = None,
    ) -> Sending:
        """Let the message wait for others if it may share their request, else send it alone."""
        if self._accumulator is not None:
            joined = self._accumulator.send(message, choice, timeout, size)
            if joined is not None:
                return joined
        return self._sender.place_one(
            self._encoder.encode(message), choice=choice, message=message, timeout=timeout, way=way
        )

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

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
    ) -> None:
        """Write one message to a broker without asking for an answer. Fast; the outcome stays unknown.

        Raises:
            MessageRejectedError, TopicNotFoundError, PermissionDeniedError, RemotingConnectError: as
                :meth:`send`.
            UnsupportedError: as :meth:`send`.
            RemotingConnectError: there was no connection to write to.
        """
        choice = queue_choice(queue, selector, arg)
        self._check(message)
        if self._observer is None:
            await self._sender.place_oneway(self._encoder.encode(message), choice=choice, message=message)
            return

        async def place(messages: Sequence[Message]) -> list[SendResult]:
            (changed,) = messages
            await self._sender.place_oneway(self._encoder.encode(changed), choice=choice, message=changed)
            return []

        await self._observed(self._observer, [message], place)

    async def send_orderly(self, message: Message, *, timeout: float | None = None) -> SendResult:
        """Send one message to the queue of its ``sharding_key``, after all earlier calls for that queue.

        A queue has one request on the wire at a time, because brokers may store pipelined requests in
        another order. With ``linger``, messages that wait for their turn share the next one.
        One attempt only. The order holds as long as the number of queues does not change.

        Raises:
            As :meth:`send`.

        Source of the rule: SelectMessageQueueByHash (Java client).
        """
        self._check(message, timeout)
        if not message.sharding_key:
            raise MessageRejectedError("send_orderly needs a sharding_key: messages of one key stay in order")
        limit = self._config.send_timeout if timeout is None else timeout
        if self._in_flight is None:
            return await self._send_in_turn(message, message.sharding_key, limit)
        async with self._in_flight.room(message, limit) as left:
            return await self._send_in_turn(message, message.sharding_key, left)

    async def _send_in_turn(self, message: Message, sharding_key: str, limit: float) -> SendResult:
        """Send a message in the order of calls, within ``limit`` seconds."""
        deadline = self._client.clock.monotonic() + limit
        try:
            async with asyncio.timeout(limit):
                async with self._order_entry:  # in order of arrival, even while the route is fetched
                    info = await self._sender.publish_info(message.topic)
                queue = SelectMessageQueueByHash()(info.queues, message, sharding_key)
                turn = None
                if self._accumulator is None or message.is_alone:  # else its line there keeps the order
                    turn = self._queue_locks[queue]
                    await turn.acquire()
        except TimeoutError as error:
            if isinstance(error, RocketMQError):
                raise
            raise SendError(f"its turn did not come within {limit} s: nothing was sent") from error
        try:
            left = max(0.0, deadline - self._client.clock.monotonic())
            return await self._send(message, QueueChoice(queue), left)
        finally:
            if turn is not None:
                turn.release()

    @blocking("sends")
    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic in one request, or in several if they exceed ``max_message_bytes``.

        Returns:
            One result per message, in the order given.

        Raises:
            MessageRejectedError: no message, two topics, a delay, or an invalid message; nothing was sent.
            As :meth:`send`; SendManyError if a later request failed: ``results`` has each message's outcome.

        Source of the rule: MessageBatch (Java client).
        """
        return await self._send_batch(messages, queue, timeout)

    async def _send_batch(
        self,
        messages: Sequence[Message],
        queue: MessageQueue | None,
        timeout: float | None,
        way: SendWay | None = None,
    ) -> list[SendResult]:
        """Send a batch. ``way``: None: on the client's loop."""
        self._client.check_started()
        are_ordinary, sizes = self._check_all(messages, timeout)
        check_batch(messages, are_ordinary=are_ordinary)

        def send(changed: Sequence[Message], sizes: list[int] | None = None) -> Awaitable[list[SendResult]]:
            return self._tracing(changed, self._many.send_batch(changed, queue, timeout, way, sizes))

        if self._observer is None:
            return await send(messages, sizes)
        return await self._observed(self._observer, messages, send)

    async def send_many(
        self, messages: Sequence[Message], *, timeout: float | None = None
    ) -> list[SendResult]:
        """Send messages in batches of up to ``max_batch_bytes``, several batches on the wire at once.

        Batches go to the queues in turn. Within a queue the messages keep the order given, except for
        batches that were retried. At most ``max_in_flight`` batches are on the wire, one per queue.

        Args:
            messages: of any topics; they may have delays.
            timeout: seconds for all attempts of one batch; None: ``send_timeout``.

        Returns:
            One result per message, in the order given.

        Raises:
            MessageRejectedError: one of them is not valid; nothing was sent.
            TopicNotFoundError, PermissionDeniedError, RemotingConnectError: there is no queue to send to;
                nothing was sent.
            SendManyError: some were not stored; ``results`` has the outcome of every message.
        """
        self._client.check_started()
        _, sizes = self._check_all(messages, timeout)
        if self._observer is None:
            return await self._tracing(messages, self._many.send_many(messages, timeout, sizes))
        return await self._observed(
            self._observer,
            messages,
            lambda changed: self._tracing(changed, self._many.send_many(changed, timeout)),
        )

    async def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be sent to, in round-robin order.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there is no such queue.

        Source of the rule: DefaultMQProducer.fetchPublishMessageQueues (Java client).
        """
        self._client.check_started()
        return list((await self._sender.publish_info(topic)).queues)

    async def request(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
        timeout: float | None = None,
    ) -> MessageExt:
        """Send a message and wait for the reply of its consumer (see ``create_reply``).

        Args:
            message: the request.
            queue, selector, arg: as :meth:`send`.
            timeout: seconds for sending and for the reply together; None: ``send_timeout``.

        Returns:
            The reply. Its offsets are 0, because the broker forwards it without storing it in a queue.

        Raises:
            UnsupportedError: the request would go through a proxy; nothing was sent.
            RemotingTimeoutError: no reply in time; it may still be consumed. Names the correlation id.
            ClientStateError: the producer was closed before the reply came.
            As :meth:`send`, while no reply has come.

        Source of the rule: DefaultMQProducer.request (Java client).
        """
        choice = queue_choice(queue, selector, arg)
        self._check(message, timeout)
        _refuse_replies([message])
        limit = self._config.send_timeout if timeout is None else timeout
        deadline = self._client.clock.monotonic() + limit
        await self._sender.find(message.topic, deadline)
        self._client.endpoint.require(REQUEST_REPLY)

        async def place(properties: Mapping[str, str], seconds: float) -> None:
            async def send(messages: Sequence[Message]) -> list[SendResult]:
                (changed,) = messages
                outgoing = self._encoder.encode(changed, system_properties=properties)
                sending = self._sender.place_one(outgoing, message=changed, choice=choice, timeout=seconds)
                return [await sending]

            sending = (
                send([message]) if self._observer is None else self._observed(self._observer, [message], send)
            )
            self._traced([message], await sending)

        return await self._requests.request(message, place, limit, deadline)

    async def recall(self, topic: str, recall_handle: str) -> str:
        """Cancel a message that still waits for its delivery time (brokers 5.x, recallMessageEnable=true).

        Args:
            topic: the topic it was sent to.
            recall_handle: the one of its :class:`SendResult`.

        Returns:
            The id of the cancelled message.

        Raises:
            MessageRejectedError: the handle is not valid.
            UnsupportedError: the broker is older than 5.3.2.
            BrokerError: the broker has the feature switched off, or the message was delivered already.
        """
        self._client.check_started()
        handle = parse_recall_handle(recall_handle)
        await self._sender.publish_info(topic)
        header = RecallMessageRequestHeader(
            producer_group=self._group,
            topic=with_namespace(topic, self._config.namespace),
            recall_handle=recall_handle,
            bname=handle.broker_name,
        )
        addr = self._client.routes.master_addr(handle.broker_name)
        answer = await self._client.remoting.invoke_ok(addr, request(header))
        return decode_header(RecallMessageResponseHeader, answer.ext_fields).msg_id

    @blocking("direct")
    def broker_health(self) -> Mapping[str, BrokerHealth]:
        """Return the latency and availability of each broker; empty unless ``send_latency_fault_enable``."""
        return self._sender.tolerance.health(round(self._client.clock.monotonic() * 1000))

    @blocking("direct")
    def sends_in_flight(self) -> SendsInFlight:
        """Return how much is in flight, and how many sends wait for room.

        All are 0 unless ``enable_backpressure_for_async_mode``: nothing is counted then.
        """
        return SendsInFlight() if self._in_flight is None else self._in_flight.figures()

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
        if self._traces is not None:
            self._traces.stored(messages, results)
        return results

    def _check_all(self, messages: Sequence[Message], timeout: float | None) -> Checked:
        check_list(messages)
        check_timeout(timeout)
        checked = check_messages(messages, self._config.max_message_bytes, FRAMING_BYTES)
        if not checked.are_ordinary:
            _refuse_replies(messages)
        return checked

    def _check(self, message: Message, timeout: float | None = None) -> int | None:
        self._client.check_started()
        if timeout is not None:
            check_timeout(timeout)
        return check_message(message, self._config.max_message_bytes)


def _refuse_replies(messages: Sequence[Message]) -> None:
    """Refuse a reply: it must be sent alone, since batches and requests have no room for its properties."""
    if any(isinstance(message, ReplyMessage) for message in messages):
        raise MessageRejectedError("a reply goes out by send or send_oneway only")
