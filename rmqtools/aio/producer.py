"""Sending messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from rmqtools.aio.lifecycle import Asynchronous
from rmqtools.config import ProducerConfig
from rmqtools.engine.producer import ProducerCore
from rmqtools.engine.send import queue_choice
from rmqtools.engine.send_many import ParcelLine
from rmqtools.errors import SendError
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.parcel import MsgIds, Parcel, ParcelResult
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import BrokerHealth, SendResult
from rmqtools.policy.selectors import MessageQueueSelector


class Producer(Asynchronous):
    """Sends messages: queues in turn, avoiding the broker that failed last.

    Use it in an ``async with`` block, or call start and close.

    Raises:
        ConfigError: by the constructor, for settings that cannot be used.
    """

    def __init__(self, config: ProducerConfig) -> None:
        self._core = ProducerCore(config)

    @property
    def config(self) -> ProducerConfig:
        """The settings it was made with."""
        return self._core.config

    @property
    def client_id(self) -> str:
        """``ip@instance``: the name brokers know this client by."""
        return self._core.client.client_id

    async def start(self) -> None:
        """Begin to poll routes and to send heartbeats. Nothing is sent before it is needed."""
        await self._core.start()

    async def close(self) -> None:
        """Leave the producer group and close all connections. A second call does nothing."""
        await self._core.close()

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

        Args:
            message: what to send.
            queue: this very queue, tried once; None: queues in turn, after a failure one on another broker.
            selector: instead of ``queue``: called with all queues, the message and ``arg``; the queue it
                gives is tried once.
            arg: for the selector.
            timeout: seconds for all attempts together; None: ``send_timeout``.

        Returns:
            Where it was stored. ``status`` tells whether it was flushed and replicated as the broker is set
            to; ``may_be_duplicated`` whether an attempt before may have stored it too.

        Raises:
            MessageRejectedError: it cannot be sent; nothing was.
            TopicNotFoundError, PermissionDeniedError: there is no queue to send to; nothing was sent.
            UnknownOutcomeError: it may or may not be stored: no answer came.
            SendError: it is not stored; ``attempts`` says why.

        Source of the rule: DefaultMQProducer.send (Java client).
        """
        return await self._core.send(message, choice=queue_choice(queue, selector, arg), timeout=timeout)

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
    ) -> None:
        """Write one message to a broker and ask for no answer: fast, and nobody knows whether it was stored.

        Raises:
            MessageRejectedError, TopicNotFoundError, PermissionDeniedError: as :meth:`send`.
            RemotingConnectError: it could not be written.
        """
        await self._core.send_oneway(message, choice=queue_choice(queue, selector, arg))

    async def send_orderly(self, message: Message, *, timeout: float | None = None) -> SendResult:
        """Send one message to the queue its ``sharding_key`` falls on, after those before it on that queue.

        One request per queue is on the wire at a time, because brokers store pipelined ones in any order.
        The queue is tried once; order is kept while the number of queues stays.

        Raises:
            As :meth:`send`.

        Source of the rule: SelectMessageQueueByHash (Java client).
        """
        return await self._core.send_orderly(message, timeout=timeout)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic in one request; more requests only above ``max_message_bytes``.

        Returns:
            One result per message, in the order given.

        Raises:
            MessageRejectedError: none, two topics, a delay, or one that cannot be sent; nothing was.
            As :meth:`send`; SendManyError when a later request failed: ``results`` tells each message's fate.

        Source of the rule: MessageBatch (Java client).
        """
        return await self._core.send_batch(messages, queue=queue, timeout=timeout)

    async def send_many(
        self, messages: Sequence[Message], *, timeout: float | None = None
    ) -> list[SendResult]:
        """Send messages in batches of up to ``max_batch_bytes``, several batches on the wire at once.

        Batches go to queues in turn; within each queue messages keep the order given, but for batches that
        had to be sent again. At most ``max_in_flight`` batches are encoded at a time, and one per queue is on
        the wire.

        Args:
            messages: of any topics, delayed ones too.
            timeout: seconds for all attempts of one batch; None: ``send_timeout``.

        Returns:
            One result per message, in the order given.

        Raises:
            MessageRejectedError: one of them cannot be sent; nothing was.
            TopicNotFoundError, PermissionDeniedError: there is no queue to send to; nothing was sent.
            SendManyError: some could not be placed; ``results`` tells for every message what became of it.
        """
        return await self._core.send_many(messages, timeout=timeout)

    def parcel_line(self) -> ParcelLine:
        """A line: calls of :meth:`send_parcels` with the same one do what one call with all parcels would.

        They may be under way together, share ``max_in_flight``, and none is begun after a failure, or after
        a call that was cancelled: a line that failed stays so. A call refused by ``MessageRejectedError``
        has no part in it.
        """
        return self._core.parcel_line()

    async def send_parcels(
        self,
        parcels: Sequence[Parcel],
        *,
        line: ParcelLine | None = None,
        timeout: float | None = None,
    ) -> list[ParcelResult | SendError]:
        """Send what is encoded already, a request each, as :meth:`send_many` sends its batches.

        For whoever makes batches without a Message per row (``rmqtools.arrow``): nothing but single messages
        among them is checked. After the first parcel that cannot be placed no more are begun.

        Args:
            parcels: parcels of one queue, in the order they are to have there.
                Those of several queues go at once as far as they are mixed.
            line: of :meth:`parcel_line`, for several calls; None: one for this call.
            timeout: seconds for all attempts of one parcel; None: ``send_timeout``.

        Returns:
            For each parcel where it was stored, or why it was not.

        Raises:
            MessageRejectedError: a single message cannot be sent, or traces are wanted; nothing was sent.
            TopicNotFoundError, PermissionDeniedError: there is no queue to send to; nothing was sent.
        """
        return await self._core.send_parcels(parcels, line=line, timeout=timeout)

    async def reserve_msg_ids(self, count: int) -> MsgIds:
        """Unique ids for messages that are encoded elsewhere, at most 65536.

        Source of the rule: MessageClientIDSetter.createUniqID (Java client).
        """
        return await self._core.reserve_msg_ids(count)

    async def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic to send to, in the order in which they come in turn.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there is none.

        Source of the rule: DefaultMQProducer.fetchPublishMessageQueues (Java client).
        """
        return await self._core.fetch_publish_queues(topic)

    async def request(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
        timeout: float | None = None,
    ) -> MessageExt:
        """Send a message and wait for the reply of whoever consumes it (see ``create_reply``).

        Args:
            message: the request.
            queue, selector, arg: as :meth:`send`.
            timeout: seconds until the reply must be here; None: ``send_timeout``.

        Returns:
            The reply. Its offsets are 0: it was handed over, not read from a queue.

        Raises:
            RemotingTimeoutError: no reply in time; it may still be consumed. Names the correlation id.
            As :meth:`send`, while no reply has come.

        Source of the rule: DefaultMQProducer.request (Java client).
        """
        return await self._core.request(message, choice=queue_choice(queue, selector, arg), timeout=timeout)

    async def recall(self, topic: str, recall_handle: str) -> str:
        """Take back a message that still waits for its delivery time (brokers 5.x, recallMessageEnable=true).

        Args:
            topic: where it was sent.
            recall_handle: from its :class:`SendResult`.

        Returns:
            The id of the message taken back.

        Raises:
            MessageRejectedError: no handle.
            BrokerError: the broker does not recall, or it is too late.
        """
        return await self._core.recall(topic, recall_handle)

    def broker_health(self) -> Mapping[str, BrokerHealth]:
        """What latency fault avoidance knows of each broker; empty while it is off."""
        return self._core.broker_health()
