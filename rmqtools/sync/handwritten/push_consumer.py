"""The base class of the blocking push consumer: the threads on which its listeners run."""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from rmqtools import aio
from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.listeners import (
    MessageQueueListener,
    check_listener,
    errors_off_the_loop,
    off_the_loop,
)
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.listener_threads import ListenerThreads

Answer = ConsumeConcurrentlyStatus | ConsumeOrderlyStatus | None
MessageListener = Callable[[list[MessageExt], ConsumeContext], Answer]


class BlockingPushConsumer(Blocking):
    """A blocking push consumer without the methods of one line."""

    def __init__(
        self,
        config: PushConsumerConfig,
        *,
        strategy: AllocateMessageQueueStrategy | str | None = None,
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
        self._noticing = ThreadPoolExecutor(1, "rmqtools-queue-listener")
        self._consumer = aio.PushConsumer(
            config,
            strategy=strategy,
            message_queue_listener=off_the_loop(message_queue_listener, self._noticing),
            error_listener=errors_off_the_loop(error_listener, self._noticing),
        )
        listeners = self._consumer._listeners
        pace = None if config.orderly else listeners.pace
        self._listening = ListenerThreads(config.consume_threads, pace=pace)
        listeners.block_on(self._listening.call)
        super().__init__(self._consumer)

    def subscribe(
        self, topic: str, listener: MessageListener, *, tags: str = "*", sql: str | None = None
    ) -> None:
        """Subscribe with a listener that runs on a thread."""
        check_listener(topic, listener)
        is_observed = self._consumer._listeners.is_observed

        def listen(messages: list[MessageExt], context: ConsumeContext) -> Awaitable[Answer]:
            if is_observed:  # the listener's own spans belong to the span of this call
                return self._listening.call(copy_context().run, listener, messages, context)
            return self._listening.call(listener, messages, context)

        def register() -> None:
            self._consumer.subscribe(topic, listen, tags=tags, sql=sql)
            self._consumer._listeners.register_blocking(topic, listener)

        self._bridge.call(register)

    def close(self) -> None:
        """Close the consumer and its threads. It does not wait for a listener that calls it."""
        if (task := self._listening.waiting_task()) is not None:
            self._bridge.call(lambda: self._consumer._listeners.closes(task))
        super().close()
        self._listening.close()
        self._noticing.shutdown(wait=False, cancel_futures=True)
