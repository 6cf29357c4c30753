"""Consuming: messages are handed to listeners as they come."""

from collections.abc import Awaitable, Callable, Sequence

from rmqtools.aio.lifecycle import Asynchronous
from rmqtools.config_consumer import PushConsumerConfig
from rmqtools.engine.listeners import MessageQueueListener
from rmqtools.engine.push import PushCore
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy

MessageListener = Callable[
    [Sequence[MessageExt], ConsumeContext],
    Awaitable[ConsumeConcurrentlyStatus | ConsumeOrderlyStatus | None],
]


class PushConsumer(Asynchronous):
    """A member of a consumer group whose listeners get the messages.

    Members share the queues of their topics by ``strategy``, which must be the same at all of them, and share
    them anew whenever a member comes or goes. Every message is handed out at least once.
    """

    def __init__(
        self,
        config: PushConsumerConfig,
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
        self.core = PushCore(
            config, strategy or AllocateAveragely(), message_queue_listener=message_queue_listener
        )

    @property
    def client_id(self) -> str:
        """``ip@instance``: the name brokers know this member by."""
        return self.core.client.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues this member holds now, sorted; those of the retry topic too."""
        return self.core.held_queues()

    def subscribe(
        self, topic: str, listener: MessageListener, *, tags: str = "*", sql: str | None = None
    ) -> None:
        """Have ``listener(messages, context)`` called for a topic's messages; before or after the start.

        Args:
            topic: each has a listener of its own.
            listener: a coroutine function. It gets 1 to ``consume_message_batch_max_size`` messages of one
                queue. To return None or CONSUME_SUCCESS (in order: SUCCESS) is to acknowledge them; to raise,
                or to return RECONSUME_LATER (SUSPEND_CURRENT_QUEUE_A_MOMENT), is to have them again. tags:
                the tags wanted, ``"a || b"``; ``*`` is everything. sql: instead, a condition on properties
                (SQL92), for brokers with ``enablePropertyFilter``.

        Raises:
            ConfigError, MessageRejectedError: a name, expression or listener that cannot be used.
        """
        self.core.listen(topic, listener, tags=tags, sql=sql)

    def unsubscribe(self, topic: str) -> None:
        """Have no more messages of a topic.

        Its listener still gets what was fetched before, and what failed before and comes again.
        """
        self.core.unsubscribe(topic)

    async def start(self) -> None:
        """Join the group. Returns when the brokers know of it; queues come with the first round.

        Raises:
            ConfigError: nothing is subscribed.
            BrokerError: a broker refuses a condition.
            RemotingError: no name server answers.
        """
        await self.core.start()

    async def close(self) -> None:
        """Leave the group.

        Listeners under way have ``close_timeout`` seconds to end; what they acknowledge is stored.
        """
        await self.core.close()

    def suspend(self) -> None:
        """Fetch nothing more until :meth:`resume`; what is fetched already is still handed out."""
        self.core.suspend()

    def resume(self) -> None:
        """Fetch again."""
        self.core.resume()
