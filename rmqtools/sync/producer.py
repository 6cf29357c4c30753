"""The blocking Producer, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rmqtools.config import ProducerConfig
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import BrokerHealth, SendResult, SendsInFlight
from rmqtools.policy.selectors import MessageQueueSelector
from rmqtools.sync.handwritten.producer import BlockingProducer


class Producer(BlockingProducer):
    """A producer. It takes the queues in turn; after a failed attempt, a send takes another broker.

    Use ``with``, or call start and close.

    Safe to share between threads.

    Raises:
        ConfigError: by the constructor, for settings that are not valid.
    """

    __module__ = "rmqtools"

    @property
    def config(self) -> ProducerConfig:
        """The settings given to the constructor."""
        return self._producer.config

    @property
    def client_id(self) -> str:
        """The name of this client at brokers: ``ip@instance``."""
        return self._producer.client_id

    def start(self) -> None:
        """Start the background tasks: route polls and heartbeats. Connections are made when needed.

        An interrupted start (Ctrl-C) closes it.
        """
        super().start()

    def close(self) -> None:
        """Leave the producer group and close all connections. Every call waits until that is done.

        Requests that wait for replies end with a ClientStateError. Messages that wait because of ``linger``
        are sent, for ``send_timeout`` at most. Cancelling a call ends only its waiting.

        Sends under way on other threads end with an error; with ``linger`` they are completed. May be
        called at any time, in any state. Interrupting a call ends only its waiting.
        """
        super().close()

    def send(
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

        A selector runs on the loop thread: it must not block.

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
        return self._sends.send(message, queue=queue, selector=selector, arg=arg, timeout=timeout)

    def send_oneway(
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
        self._bridge.run(lambda: self._producer.send_oneway(message, queue=queue, selector=selector, arg=arg))

    def send_orderly(self, message: Message, *, timeout: float | None = None) -> SendResult:
        """Send one message to the queue of its ``sharding_key``, after all earlier calls for that queue.

        A queue has one request on the wire at a time, because brokers may store pipelined requests in
        another order. With ``linger``, messages that wait for their turn share the next one.
        One attempt only. The order holds as long as the number of queues does not change.

        Raises:
            As :meth:`send`.

        Source of the rule: SelectMessageQueueByHash (Java client).
        """
        return self._bridge.run(lambda: self._producer.send_orderly(message, timeout=timeout))

    def send_batch(
        self, messages: Sequence[Message], *, queue: MessageQueue | None = None, timeout: float | None = None
    ) -> list[SendResult]:
        """Send messages of one topic in one request, or in several if they exceed ``max_message_bytes``.

        Returns:
            One result per message, in the order given.

        Raises:
            MessageRejectedError: no message, two topics, a delay, or an invalid message; nothing was sent.
            As :meth:`send`; SendManyError if a later request failed: ``results`` has each message's outcome.

        Source of the rule: MessageBatch (Java client).
        """
        return self._sends.send_batch(messages, queue=queue, timeout=timeout)

    def send_many(self, messages: Sequence[Message], *, timeout: float | None = None) -> list[SendResult]:
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
        return self._bridge.run(lambda: self._producer.send_many(messages, timeout=timeout))

    def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be sent to, in round-robin order.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there is no such queue.

        Source of the rule: DefaultMQProducer.fetchPublishMessageQueues (Java client).
        """
        return self._bridge.run(lambda: self._producer.fetch_publish_queues(topic))

    def request(
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
        return self._bridge.run(
            lambda: self._producer.request(message, queue=queue, selector=selector, arg=arg, timeout=timeout)
        )

    def recall(self, topic: str, recall_handle: str) -> str:
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
        return self._bridge.run(lambda: self._producer.recall(topic, recall_handle))

    def broker_health(self) -> Mapping[str, BrokerHealth]:
        """Return the latency and availability of each broker; empty unless ``send_latency_fault_enable``."""
        return self._producer.broker_health()

    def sends_in_flight(self) -> SendsInFlight:
        """Return how much is in flight, and how many sends wait for room.

        All are 0 unless ``enable_backpressure_for_async_mode``: nothing is counted then.
        """
        return self._producer.sends_in_flight()

    @property
    def is_connected(self) -> bool:
        """True if the client is started and a broker can be reached: an answer for health probes.

        Sends nothing. The first request to a broker opens a connection. Members of groups, producers too,
        also connect with their heartbeats (every ``heartbeat_broker_interval``, 30 s) to the brokers of all
        topics they know, and connect again after a loss. A broker that answered no heartbeat does not count.
        """
        return self._producer.is_connected

    def update_name_server(self, name_server: str) -> None:
        """Use other name servers from now on; connections to brokers stay.

        Args:
            name_server: ``host:port``, several separated by ``;``.

        Raises:
            ConfigError: none is given, or one is no address.

        Source of the rule: MQClientAPIImpl.updateNameServerAddressList (Java client).
        """
        self._bridge.run(lambda: self._producer.update_name_server(name_server))
