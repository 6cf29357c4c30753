"""Consuming: messages are asked for, by a poll or by iteration."""

from collections.abc import AsyncIterator, Collection, Mapping
from types import TracebackType

from rmqtools.aio.lifecycle import Asynchronous
from rmqtools.config_consumer import PullConsumerConfig
from rmqtools.engine.listeners import MessageQueueListener
from rmqtools.engine.pull_consumer import PullCore
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy


class PullConsumer(Asynchronous):
    """A member of a consumer group that asks for its messages: Java's DefaultLitePullConsumer.

    Queues are shared among the members (``subscribe``) or fixed (``assign``). They are fetched in the
    background, up to ``pull_threshold_for_queue`` messages ahead; the messages of a queue come in its order.

    With ``auto_commit`` a poll commits what the polls before it handed out, every ``auto_commit_interval``
    seconds, and closing commits everything handed out. A block that is left by an exception, and a queue that
    goes to another member, commit without the last poll: what it handed out comes again.
    """

    def __init__(
        self,
        config: PullConsumerConfig,
        *,
        strategy: AllocateMessageQueueStrategy | None = None,
        message_queue_listener: MessageQueueListener | None = None,
    ) -> None:
        """Make a consumer; nothing is sent before it is started.

        Args:
            config: group and settings.
            strategy: how members share the queues; None: AllocateAveragely.
            message_queue_listener: called as ``(topic, all_queues, mine)`` on the loop when the queues held
                of a topic have changed; must not block.

        Raises:
            ConfigError, MessageRejectedError: settings or a group name that cannot be used.
        """
        self.core = PullCore(
            config, strategy or AllocateAveragely(), message_queue_listener=message_queue_listener
        )

    @property
    def client_id(self) -> str:
        """``ip@instance``: the name brokers know this member by."""
        return self.core.client.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues this member holds now, sorted."""
        return self.core.held_queues()

    def assignment(self) -> list[MessageQueue]:
        """The same as :attr:`queues`."""
        return self.core.held_queues()

    def subscribe(self, topic: str, *, tags: str = "*", sql: str | None = None) -> None:
        """Read a topic's queues together with the other members of the group; before or after the start.

        Args:
            topic: any number of them, one call each.
            tags: the tags wanted, ``"a || b"``; ``*`` is everything.
            sql: instead, a condition on properties (SQL92), for brokers with ``enablePropertyFilter``.

        Raises:
            ClientStateError: queues are assigned.
            ConfigError, MessageRejectedError: a name or an expression that cannot be used.
        """
        self.core.subscribe(topic, tags=tags, sql=sql)

    def unsubscribe(self, topic: str) -> None:
        """Have no more messages of a topic, from now on."""
        self.core.unsubscribe(topic)

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Read just these queues, whoever else reads them; before or after the start.

        They replace those assigned before; queues in both go on where they are. All messages come, whatever
        their tags. Members of a group that subscribe count this one as one of them: use a group of its own.

        Raises:
            ClientStateError: topics are subscribed.
        """
        self.core.assign(queues)

    async def start(self) -> None:
        """Join the group. Returns after the first round, when queues are held if they can be.

        Raises:
            BrokerError: a broker refuses a condition.
            RemotingError: no name server answers.
        """
        await self.core.start()

    async def close(self) -> None:
        """Leave the group; with ``auto_commit``, commit what was handed out. Polls under way return."""
        await self.core.close()

    async def poll(self, timeout: float | None = None, max_messages: int | None = None) -> list[MessageExt]:
        """Wait for messages.

        Args:
            timeout: seconds until an empty list is returned; 0: only what is here. None: ``poll_timeout``.
            max_messages: how many at most; None: ``poll_batch_size``.

        Raises:
            ClientStateError: not started, closed, or nothing is subscribed or assigned.
        """
        return await self.core.poll(timeout, max_messages)

    async def __aiter__(self) -> AsyncIterator[MessageExt]:
        """Every message, waiting for more, until the consumer is closed.

        To come back for the next message is to be through with the one before. An iteration that is left can
        be taken up again: nothing is passed over.
        """
        while (message := await self.core.next()) is not None:
            yield message

    def pause(self, queues: Collection[MessageQueue]) -> None:
        """Fetch and hand out nothing of these queues until :meth:`resume`. They stay with this member.

        Queues that are not held are passed over.
        """
        self.core.pause(queues)

    def resume(self, queues: Collection[MessageQueue]) -> None:
        """End a :meth:`pause`."""
        self.core.resume(queues)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at another offset of a queue. No message fetched before comes out afterwards.

        Raises:
            ClientStateError: the queue is not held.
            DataLossError: the broker does not hold that offset; one more than the last is allowed.
        """
        await self.core.seek(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Go on at the first offset a queue still holds. Errors as of :meth:`seek`."""
        await self.core.seek_to_begin(queue)

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Go on after the last message of a queue. Errors as of :meth:`seek`."""
        await self.core.seek_to_end(queue)

    async def seek_to_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """Go on at the first message stored at a time or later. Errors as of :meth:`seek`."""
        await self.core.seek_to_timestamp(queue, timestamp_ms)

    async def position(self, queue: MessageQueue) -> int:
        """The offset where a queue goes on: of its next message, if that is known yet.

        Where messages are missing or not wanted it moves on without any being handed out, so it tells when a
        range has been read to its end.

        Raises:
            ClientStateError: the queue is not held.
        """
        return await self.core.position(queue)

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Store how far queues are consumed, and wait until the brokers have it.

        Args:
            offsets: the next offset to consume, by queue; None: all that was handed out is consumed.

        Raises:
            ClientStateError: a queue is not held; nothing is sent.
            RocketMQError: an offset is not stored, others may be.
        """
        await self.core.commit(offsets)

    async def committed(self, queue: MessageQueue) -> int | None:
        """The group's offset as it is stored now; None: it has none. Of any queue."""
        return await self.core.committed(queue)

    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """All queues of a topic that can be read, sorted.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there are none.
        """
        return await self.core.fetch_queues(topic)

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first offset a queue still holds."""
        return await self.core.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the last offset of a queue."""
        return await self.core.max_offset(queue)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at a time or later."""
        return await self.core.search_offset(queue, timestamp_ms)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.core.keeps_last_poll = kind is not None
        await self.close()
