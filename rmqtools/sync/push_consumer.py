"""The blocking PushConsumer, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.listeners import MessageQueueListener
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.allocate.strategy_table import StrategyName
from rmqtools.sync.handwritten.push_consumer import BlockingPushConsumer, MessageListener


class PushConsumer(BlockingPushConsumer):
    """A member of a consumer group that calls listeners with its messages.

    Members share the queues of their topics by ``strategy``, which must be the same for all members, and
    rebalance whenever a member joins or leaves. Every message is delivered at least once.

    Listeners run on ``consume_threads`` threads.
    """

    __module__ = "rmqtools"

    def __init__(
        self,
        config: PushConsumerConfig,
        *,
        strategy: AllocateMessageQueueStrategy | StrategyName | None = None,
        message_queue_listener: MessageQueueListener | None = None,
        error_listener: ErrorListener | None = None,
    ) -> None:
        """Make a consumer; nothing is sent before it is started.

        Args:
            config: group and settings.
            strategy: how members share the queues, or the name of a built-in strategy that needs no options
                (``"AVG_BY_CIRCLE"``); None: AVG.
            message_queue_listener: called as ``(topic, all_queues, own_queues)`` on a thread when this
                member's queues of a topic have changed; may block.
            error_listener: called with an error on a thread when a broker begins to refuse this member for
                lack of permission; may block. If every broker refuses, the start raises.

        Raises:
            ConfigError, MessageRejectedError: a setting or the group name is not valid.
        """
        super().__init__(
            config,
            strategy=strategy,
            message_queue_listener=message_queue_listener,
            error_listener=error_listener,
        )

    @property
    def client_id(self) -> str:
        """The name of this member at brokers: ``ip@instance``."""
        return self._consumer.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues this member holds now, sorted; those of the retry topic too."""
        return self._consumer.queues

    def start(self) -> None:
        """Join the group. Returns when this member holds its share, after the first rebalance, or after 10 s.

        A message that is sent after that is not missed, wherever the group begins: its place in each queue is
        known and stored. Java's start returns before, and such messages may be skipped. There is no setting:
        the wait takes a few requests, and a broker that does not answer makes it no longer than 10 s.
        Listeners may be called before this returns.

        An interrupted start (Ctrl-C) closes it.

        Raises:
            ConfigError: nothing is subscribed.
            UnsupportedError: a proxy, or a broker too old, for shares of brokers, pins or conditions.
            BrokerError: a broker refuses an SQL92 condition.
            RemotingError: no name server answers.
        """
        super().start()

    def close(self) -> None:
        """Leave the group. May be called at any time, in any state, also after an interrupted close.

        Running listeners have ``close_timeout`` seconds to return; the offsets they complete are stored.

        It does not wait for a listener that calls it. Interrupting a call ends only its waiting.
        """
        super().close()

    def subscribe(
        self, topic: str, listener: MessageListener, *, tags: str = "*", sql: str | None = None
    ) -> None:
        """Call ``listener(messages, context)`` for a topic's messages; before or after the start.

        Args:
            topic: one topic; each has its own listener.
            listener: a function; may block. It gets 1 to ``consume_message_batch_max_size`` messages of one
                queue. If it returns None or CONSUME_SUCCESS (``orderly``: SUCCESS), they are acknowledged. If
                it raises, or returns RECONSUME_LATER (``orderly``: SUSPEND_CURRENT_QUEUE_A_MOMENT), they are
                delivered again.
            tags: the tags wanted, ``"a || b"``; ``*`` is everything.
            sql: a condition on properties (SQL92) instead of tags; needs ``enablePropertyFilter`` on brokers.
                Topics with the queue type BatchCQ are refused at the start: brokers evaluate a condition for
                a stored batch as a whole.

        Raises:
            TypeError: ``listener`` cannot be called with messages and context, or is of the other kind:
                blocking consumers take plain functions, those of ``rmqtools.aio`` coroutine functions.
            ConfigError, MessageRejectedError: a name or an expression that cannot be used.
        """
        super().subscribe(topic, listener, tags=tags, sql=sql)

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic. Its queues are released soon, as those that go to another member.

        Messages that were fetched and are not consumed by then are not acknowledged: the group gets them when
        a member subscribes again. The listener still gets the retries of messages that failed.
        """
        self._bridge.call(lambda: self._consumer.unsubscribe(topic))

    def suspend(self) -> None:
        """Stop fetching until :meth:`resume`. Messages fetched already are still delivered."""
        self._bridge.call(lambda: self._consumer.suspend())

    def resume(self) -> None:
        """End a :meth:`suspend`: fetch again."""
        self._bridge.call(lambda: self._consumer.resume())

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
