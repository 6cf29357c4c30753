"""The blocking SimpleConsumer, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from collections.abc import Sequence

from rmqtools.config.simple_consumer import SimpleConsumerConfig
from rmqtools.model.message import MessageExt
from rmqtools.sync.handwritten.simple_consumer import BlockingSimpleConsumer


class SimpleConsumer(BlockingSimpleConsumer):
    """A member of a consumer group that receives, acknowledges and hides single messages.

    Like the SimpleConsumer of RocketMQ's gRPC clients, without a proxy; brokers 5.0 or newer. A received
    message is hidden from all members for ``invisible_duration``. If it is not acknowledged within this time,
    it comes again, with one more in ``reconsume_times``. Any number of tasks may call it at the same time.

    Safe to share between threads.
    """

    __module__ = "rmqtools"

    def __init__(self, config: SimpleConsumerConfig) -> None:
        """Make a consumer; nothing is sent before it is started.

        Args:
            config: group and settings.

        Raises:
            ConfigError, MessageRejectedError: a setting or the group name is not valid.
        """
        super().__init__(config)

    @property
    def client_id(self) -> str:
        """The name of this member at brokers: ``ip@instance``."""
        return self._consumer.client_id

    def start(self) -> None:
        """Join the group.

        An interrupted start (Ctrl-C) closes it.

        Raises:
            UnsupportedError: a proxy, or a broker older than 5.0.
            BrokerError: a broker refuses an SQL92 condition.
            RemotingError: no name server answers.
        """
        super().start()

    def close(self) -> None:
        """Leave the group. Running calls of :meth:`receive` return no messages.

        Messages that were not acknowledged come again after their invisible time. May be called at any time,
        in any state, also after an interrupted close.

        Interrupting a call ends only its waiting.
        """
        super().close()

    def subscribe(self, topic: str, *, tags: str = "*", sql: str | None = None) -> None:
        """Receive a topic's messages from now on; before or after the start.

        Args:
            topic: one topic; call it again for more.
            tags: the tags wanted, ``"a || b"``; ``*`` is everything.
            sql: a condition on properties (SQL92) instead of tags; needs ``enablePropertyFilter`` on brokers.

        Raises:
            ConfigError, MessageRejectedError: a name or an expression is not valid.
        """
        self._bridge.call(lambda: self._consumer.subscribe(topic, tags=tags, sql=sql))

    def unsubscribe(self, topic: str) -> None:
        """Stop receiving a topic's messages."""
        self._bridge.call(lambda: self._consumer.unsubscribe(topic))

    def receive(
        self,
        *,
        max_messages: int | None = None,
        invisible_duration: float | None = None,
        wait: float | None = None,
    ) -> list[MessageExt]:
        """Wait for messages; return 1 to ``max_messages`` of one topic and broker, or none after ``wait``.

        Messages that were tried more than ``max_reconsume_times`` times become dead letters, and are not
        returned. If the call is cancelled, the messages of its answer go to other calls.

        Args:
            max_messages: 1 to 32; None: the setting of this name, as for the other arguments.
            invisible_duration: seconds until a message that was not acknowledged comes again.
            wait: seconds until an empty list is returned; brokers may answer up to 5 s later. 0: ask each
                broker once.

        Raises:
            ClientStateError: not started, closed, or nothing is subscribed.
            ConfigError: an argument is out of range, or a topic is static or of the queue type BatchCQ.
            UnsupportedError: a proxy, a broker older than 5.0, or one with ``timerWheelEnable=false``.
            TopicNotFoundError: no subscribed topic has a route.
            BrokerError, RemotingError: every broker refused, or did not answer; of several, the last error.
        """
        return super().receive(max_messages=max_messages, invisible_duration=invisible_duration, wait=wait)

    def ack(self, messages: MessageExt | Sequence[MessageExt], *, batched: bool = False) -> None:
        """Acknowledge received messages: they are consumed, and do not come again.

        Each has a request and an answer of its own; all are on the wire together. A second acknowledgement
        does nothing. Messages may have been received by another member of the group, in any process.

        Args:
            messages: one message, or several.
            batched: send one request to each broker (5.1.3 or newer), which costs far less. Its answer does
                not tell whether each acknowledgement counted: a message of which it did not comes again,
                and nothing is raised.

        Raises:
            AcknowledgeError: some were not acknowledged; ``failed`` has each with its error:
                :class:`ReceiptError` for one whose receipt has ended or was replaced.
            ClientStateError: not started, or closed.
        """
        self._bridge.run(lambda: self._consumer.ack(messages, batched=batched))

    def change_invisible_duration(
        self, message: MessageExt, seconds: float, *, suspend: bool = False
    ) -> MessageExt:
        """Hide a received message for ``seconds`` from now on, more or less than before.

        Args:
            message: as returned by :meth:`receive`, or by the last call of this method.
            seconds: 1 second to 12 hours.
            suspend: the delivery after that does not count in ``reconsume_times``; brokers 5.5 or newer.

        Returns:
            The message with its new receipt. The old one is refused from now on.

        Raises:
            ReceiptError: the receipt of the message has ended or was replaced.
            ConfigError: ``seconds`` is out of range.
            UnsupportedError: ``suspend``, and the broker is older than 5.5.
            BrokerError, RemotingConnectError: the broker refused, or nothing was sent.
            RemotingError: the broker did not answer. The receipt may have been replaced: it is refused from
                now on, and the message comes again.
            ClientStateError: not started, or closed.
        """
        return self._bridge.run(
            lambda: self._consumer.change_invisible_duration(message, seconds, suspend=suspend)
        )

    @property
    def is_connected(self) -> bool:
        """True if the client is started and a broker can be reached: an answer for health probes.

        Sends nothing. The first request to a broker opens a connection. Members of groups, producers too,
        also connect with their heartbeats (every ``heartbeat_broker_interval``, 30 s) to the brokers of all
        topics they know, and connect again after a loss. A broker that answered no heartbeat does not count.
        """
        return self._consumer.is_connected

    def update_name_server(self, name_server: str) -> None:
        """Use other name servers from now on; connections to brokers stay.

        Args:
            name_server: ``host:port``, several separated by ``;``.

        Raises:
            ConfigError: none is given, or one is no address.

        Source of the rule: MQClientAPIImpl.updateNameServerAddressList (Java client).
        """
        self._bridge.run(lambda: self._consumer.update_name_server(name_server))
