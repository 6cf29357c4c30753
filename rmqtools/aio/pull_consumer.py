"""The pull consumer: the application asks for messages, by a poll or by iteration."""

from collections.abc import AsyncIterator, Collection, Mapping
from types import TracebackType

from rmqtools.config.consumer import PullConsumerConfig
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.listeners import MessageQueueListener
from rmqtools.engine.consumer.pull_consumer import PullCore
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy


class PullConsumer(Asynchronous):
    """A member of a consumer group that polls its messages, like Java's DefaultLitePullConsumer.

    Queues are shared among the members (``subscribe``) or fixed (``assign``). Messages are fetched in the
    background, up to ``pull_threshold_for_queue`` per queue, and returned in the order of their queue.

    With ``auto_commit``, ``poll`` commits the messages of earlier polls every ``auto_commit_interval``
    seconds, and closing commits everything returned. If a block is left by an exception, or a queue goes to
    another member, the messages of the last poll are not committed and will be returned again.
    """

    def __init__(
        self,
        config: PullConsumerConfig,
        *,
        strategy: AllocateMessageQueueStrategy | None = None,
        message_queue_listener: MessageQueueListener | None = None,
        error_listener: ErrorListener | None = None,
    ) -> None:
        """Make a consumer; nothing is sent before it is started.

        Args:
            config: group and settings.
            strategy: how members share the queues; None: AllocateAveragely.
            message_queue_listener: called as ``(topic, all_queues, own_queues)`` on the loop when this
                member's queues of a topic have changed; must not block.
            error_listener: called with an error on the loop when a broker begins to refuse this member for
                lack of permission; must not block. ``poll`` raises it too, once, when it has no message. If
                every broker refuses, the start raises.

        Raises:
            ConfigError, MessageRejectedError: a setting or the group name is not valid.
        """
        self.core = PullCore(
            config, strategy or AllocateAveragely(), message_queue_listener=message_queue_listener
        )
        if error_listener is not None:
            self.core.client.refusals.listen(error_listener)

    @property
    def client_id(self) -> str:
        """The name of this member at brokers: ``ip@instance``."""
        return self.core.client.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues this member holds now, sorted."""
        return self.core.member.held_queues()

    def assignment(self) -> list[MessageQueue]:
        """The same as :attr:`queues`."""
        return self.core.member.held_queues()

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
        self.core.subscribe(topic, tags=tags, sql=sql)

    def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic at once."""
        self.core.unsubscribe(topic)

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Read exactly these queues, also if other members read them; before or after the start.

        They replace the queues of an earlier call; queues in both continue where they are. Tags are not
        filtered. Members that subscribe would count this one in their shares: use a separate group.

        Raises:
            ClientStateError: ``subscribe`` was called before.
        """
        self.core.assign(queues)

    async def start(self) -> None:
        """Join the group. Returns after the first rebalance, when this member holds its share.

        Raises:
            UnsupportedError: a proxy, or a broker too old, for pins or conditions.
            BrokerError: a broker refuses an SQL92 condition.
            RemotingError: no name server answers.
        """
        await self.core.start()

    async def close(self) -> None:
        """Leave the group; with ``auto_commit``, commit what was handed out. Running polls return.

        May be called at any time, in any state, also after an interrupted close.
        """
        await self.core.close()

    async def poll(self, timeout: float | None = None, max_messages: int | None = None) -> list[MessageExt]:
        """Wait for messages.

        Args:
            timeout: seconds until an empty list is returned; 0: only messages fetched already. None:
                ``poll_timeout``.
            max_messages: the most messages to return; None: ``poll_batch_size``.

        Raises:
            ClientStateError: not started, closed, or nothing is subscribed or assigned.
        """
        return await self.core.poll(timeout, max_messages)

    async def __aiter__(self) -> AsyncIterator[MessageExt]:
        """Yield every message and wait for more, until the consumer is closed.

        Asking for the next message counts the previous one as consumed. After leaving the iteration, a new
        one continues without skipping a message.
        """
        while (message := await self.core.next()) is not None:
            yield message

    def pause(self, queues: Collection[MessageQueue]) -> None:
        """Stop fetching and returning messages of these queues until :meth:`resume`. This member keeps them.

        Queues that this member does not hold are ignored.
        """
        self.core.pause(queues)

    def resume(self, queues: Collection[MessageQueue]) -> None:
        """End a :meth:`pause`."""
        self.core.resume(queues)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at another offset of a queue. Messages fetched before are discarded.

        Raises:
            ClientStateError: this member does not hold the queue.
            DataLossError: the broker does not have that offset; one more than the last is allowed.
        """
        await self.core.seek(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue at the first offset of a queue. Raises as :meth:`seek`."""
        await self.core.seek_to_begin(queue)

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue after the last message of a queue. Raises as :meth:`seek`."""
        await self.core.seek_to_end(queue)

    async def seek_to_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """Continue at the first message stored at or after a time. Raises as :meth:`seek`."""
        await self.core.seek_to_timestamp(queue, timestamp_ms)

    async def position(self, queue: MessageQueue) -> int:
        """Return the offset at which a queue continues: that of its next message, if known yet.

        It also moves past missing and filtered messages, so it shows when a range has been read to its end.

        Raises:
            ClientStateError: this member does not hold the queue.
        """
        return await self.core.position(queue)

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Store consumer offsets and wait until the brokers have them.

        Args:
            offsets: the next offset to consume, by queue; None: every message returned counts as consumed.

        Raises:
            ClientStateError: this member does not hold a queue; nothing is sent.
            RocketMQError: an offset is not stored; others may be.
        """
        await self.core.commit(offsets)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's stored offset of any queue; None if it has none."""
        return await self.core.committed(queue)

    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """Return all queues of a topic that can be read, sorted.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there are none.
        """
        return await self.core.fetch_queues(topic)

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the first offset that a queue still has."""
        return await self.core.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return one more than the last offset of a queue."""
        return await self.core.max_offset(queue)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the first message stored at or after a time."""
        return await self.core.search_offset(queue, timestamp_ms)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.core.keeps_last_poll = kind is not None
        await self.close()
