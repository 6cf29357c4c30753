"""The push consumer: listeners are called with messages as they arrive."""

from collections.abc import Awaitable, Callable

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.listeners import MessageQueueListener
from rmqtools.engine.consumer.push_consumer import PushCore
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy

MessageListener = Callable[
    [list[MessageExt], ConsumeContext],
    Awaitable[ConsumeConcurrentlyStatus | ConsumeOrderlyStatus | None],
]


class PushConsumer(Asynchronous):
    """A member of a consumer group that calls listeners with its messages.

    Members share the queues of their topics by ``strategy``, which must be the same for all members, and
    rebalance whenever a member joins or leaves. Every message is delivered at least once.
    """

    def __init__(
        self,
        config: PushConsumerConfig,
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
                lack of permission; must not block. If every broker refuses, the start raises.

        Raises:
            ConfigError, MessageRejectedError: a setting or the group name is not valid.
        """
        self.core = PushCore(
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
        """The queues this member holds now, sorted; those of the retry topic too."""
        return self.core.member.held_queues()

    def subscribe(
        self, topic: str, listener: MessageListener, *, tags: str = "*", sql: str | None = None
    ) -> None:
        """Call ``listener(messages, context)`` for a topic's messages; before or after the start.

        Args:
            topic: one topic; each has its own listener.
            listener: a coroutine function. It gets 1 to ``consume_message_batch_max_size`` messages of one
                queue. Returning None or CONSUME_SUCCESS (``orderly``: SUCCESS) acknowledges them. Raising, or
                returning RECONSUME_LATER (``orderly``: SUSPEND_CURRENT_QUEUE_A_MOMENT), has them delivered
                again.
            tags: the tags wanted, ``"a || b"``; ``*`` is everything.
            sql: a condition on properties (SQL92) instead of tags; needs ``enablePropertyFilter`` on brokers.
                Topics with the queue type BatchCQ are refused at the start: brokers evaluate a condition for
                a stored batch as a whole.

        Raises:
            TypeError: ``listener`` cannot be called with messages and context.
            ConfigError, MessageRejectedError: a name or an expression that cannot be used.
        """
        self.core.listen(topic, listener, tags=tags, sql=sql)

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic.

        Its listener still gets the messages that were fetched already, and the retries of those that failed.
        """
        self.core.unsubscribe(topic)

    async def start(self) -> None:
        """Join the group. Returns when the brokers know this member; the first rebalance assigns its queues.

        Raises:
            ConfigError: nothing is subscribed.
            UnsupportedError: a proxy, or a broker too old, for shares of brokers, pins or conditions.
            BrokerError: a broker refuses an SQL92 condition.
            RemotingError: no name server answers.
        """
        await self.core.start()

    async def close(self) -> None:
        """Leave the group: at any time, from any state, also after a close that was cut off.

        Running listeners have ``close_timeout`` seconds to return; the offsets they complete are stored.
        """
        await self.core.close()

    def suspend(self) -> None:
        """Stop fetching until :meth:`resume`. Messages fetched already are still delivered."""
        self.core.suspend()

    def resume(self) -> None:
        """Fetch again."""
        self.core.resume()
