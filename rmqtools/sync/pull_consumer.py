"""The blocking PullConsumer, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

from collections.abc import Collection, Mapping

from rmqtools.config.consumer import PullConsumerConfig
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.listeners import MessageQueueListener
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.allocate.strategy_table import StrategyName
from rmqtools.sync.handwritten.pull_consumer import BlockingPullConsumer


class PullConsumer(BlockingPullConsumer):
    """A member of a consumer group that polls its messages, like Java's DefaultLitePullConsumer.

    Queues are shared among the members (``subscribe``) or fixed (``assign``). Messages are fetched in the
    background, up to ``pull_threshold_for_queue`` per queue and ``pull_threshold_bytes_for_all`` together,
    and returned in the order of their queue.

    With ``auto_commit``, ``poll`` commits the messages of earlier polls every ``auto_commit_interval``
    seconds, and closing commits everything returned. If a block is left by an exception, or a queue goes to
    another member, the messages of the last poll are not committed and will be returned again.

    One thread polls, any may call the rest.
    """

    __module__ = "rmqtools"

    def __init__(
        self,
        config: PullConsumerConfig,
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
                lack of permission; may block. ``poll`` raises it too, once, when it has no message. If
                every broker refuses, the start raises.

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
        """The queues this member holds now, sorted."""
        return self._consumer.queues

    def assignment(self) -> list[MessageQueue]:
        """Return the same as :attr:`queues`."""
        return self._consumer.assignment()

    def start(self) -> None:
        """Join the group. Returns when this member holds its share, after the first rebalance, or after 10 s.

        A message that is sent after that is not missed, wherever the group begins.

        An interrupted start (Ctrl-C) closes it.

        Raises:
            UnsupportedError: a proxy, or a broker too old, for pins or conditions.
            BrokerError: a broker refuses an SQL92 condition.
            RemotingError: no name server answers.
        """
        super().start()

    def close(self) -> None:
        """Leave the group; with ``auto_commit``, commit what was handed out. Running polls return.

        May be called at any time, in any state, also after an interrupted close.

        Interrupting a call ends only its waiting.
        """
        super().close()

    def subscribe(self, topic: str, *, tags: str = "*", sql: str | None = None) -> None:
        """Read a topic's queues together with the other members of the group; before or after the start.

        Args:
            topic: one topic; call it again for more.
            tags: the tags wanted, ``"a || b"``; ``*`` is everything.
            sql: a condition on properties (SQL92) instead of tags; needs ``enablePropertyFilter`` on brokers.
                Topics with the queue type BatchCQ are refused at the start: brokers evaluate a condition for
                a stored batch as a whole.

        Raises:
            ClientStateError: ``assign`` was called before.
            ConfigError, MessageRejectedError: a name or an expression is not valid.
        """
        self._bridge.call(lambda: self._consumer.subscribe(topic, tags=tags, sql=sql))

    def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic at once."""
        self._bridge.call(lambda: self._consumer.unsubscribe(topic))

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Read exactly these queues, also if other members read them; before or after the start.

        They replace the queues of an earlier call; queues in both continue where they are. Tags are not
        filtered. Members that subscribe would count this one in their shares: use a separate group.

        Raises:
            ClientStateError: ``subscribe`` was called before.
            ConfigError: these are no queues.
        """
        self._bridge.call(lambda: self._consumer.assign(queues))

    def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """Return all queues of a topic that can be read, sorted.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there are none.
        """
        return self._bridge.run(lambda: self._consumer.fetch_queues(topic))

    def pause(self, queues: Collection[MessageQueue]) -> None:
        """Stop fetching and returning messages of these queues until :meth:`resume`. This member keeps them.

        Queues that this member does not hold are ignored.
        """
        self._bridge.call(lambda: self._consumer.pause(queues))

    def resume(self, queues: Collection[MessageQueue]) -> None:
        """End a :meth:`pause`."""
        self._bridge.call(lambda: self._consumer.resume(queues))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at another offset of a queue. Messages fetched before are discarded.

        Raises:
            ClientStateError: this member does not hold the queue.
            DataLossError: the broker does not have that offset; one more than the last is allowed.
        """
        self._bridge.run(lambda: self._consumer.seek(queue, offset))

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue at the first offset of a queue. Raises as :meth:`seek`."""
        self._bridge.run(lambda: self._consumer.seek_to_begin(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue after the last message of a queue. Raises as :meth:`seek`."""
        self._bridge.run(lambda: self._consumer.seek_to_end(queue))

    def seek_to_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """Continue at the first message stored at or after a time. Raises as :meth:`seek`."""
        self._bridge.run(lambda: self._consumer.seek_to_timestamp(queue, timestamp_ms))

    def position(self, queue: MessageQueue) -> int:
        """Return the offset at which a queue continues: that of its next message, if known yet.

        It also moves past missing and filtered messages, so it shows when a range has been read to its end.

        Raises:
            ClientStateError: this member does not hold the queue.
        """
        return self._bridge.run(lambda: self._consumer.position(queue))

    def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Store consumer offsets and wait until the brokers have them.

        Args:
            offsets: the next offset to consume, by queue; None: every message returned counts as consumed.

        Raises:
            ClientStateError: this member does not hold a queue; nothing is sent.
            RocketMQError: an offset is not stored; others may be.
        """
        self._bridge.run(lambda: self._consumer.commit(offsets))

    def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's stored offset of any queue; None if it has none."""
        return self._bridge.run(lambda: self._consumer.committed(queue))

    def min_offset(self, queue: MessageQueue) -> int:
        """Return the first offset that a queue still has."""
        return self._bridge.run(lambda: self._consumer.min_offset(queue))

    def max_offset(self, queue: MessageQueue) -> int:
        """Return the last offset of a queue plus one."""
        return self._bridge.run(lambda: self._consumer.max_offset(queue))

    def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the first message stored at or after a time."""
        return self._bridge.run(lambda: self._consumer.search_offset(queue, timestamp_ms))

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
