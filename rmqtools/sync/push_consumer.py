"""Blocking face of :mod:`rmqtools.aio.push_consumer`."""

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
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.listener_threads import ListenerThreads

Answer = ConsumeConcurrentlyStatus | ConsumeOrderlyStatus | None
MessageListener = Callable[[list[MessageExt], ConsumeContext], Answer]


class PushConsumer(Blocking):
    """Blocking face of :class:`rmqtools.aio.PushConsumer`. Listeners run on ``consume_threads`` threads."""

    def __init__(
        self,
        config: PushConsumerConfig,
        *,
        strategy: AllocateMessageQueueStrategy | str | None = None,
        message_queue_listener: MessageQueueListener | None = None,
        error_listener: ErrorListener | None = None,
    ) -> None:
        """See :class:`rmqtools.aio.PushConsumer`.

        ``message_queue_listener`` and ``error_listener`` run on a thread and may block.
        """
        self._noticing = ThreadPoolExecutor(1, "rmqtools-queue-listener")
        self._consumer = aio.PushConsumer(
            config,
            strategy=strategy,
            message_queue_listener=off_the_loop(message_queue_listener, self._noticing),
            error_listener=errors_off_the_loop(error_listener, self._noticing),
        )
        listeners = self._consumer.core.listeners
        pace = None if config.orderly else listeners.pace
        self._listening = ListenerThreads(config.consume_threads, pace=pace)
        listeners.block_on(self._listening.call)
        super().__init__(self._consumer)

    @property
    def client_id(self) -> str:
        """See :attr:`rmqtools.aio.PushConsumer.client_id`."""
        return self._consumer.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """See :attr:`rmqtools.aio.PushConsumer.queues`."""
        return self._consumer.queues

    def subscribe(
        self, topic: str, listener: MessageListener, *, tags: str = "*", sql: str | None = None
    ) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.subscribe`; ``listener`` is a plain function and may block."""
        check_listener(topic, listener)
        is_observed = self._consumer.core.listeners.is_observed

        def listen(messages: list[MessageExt], context: ConsumeContext) -> Awaitable[Answer]:
            if is_observed:  # the listener's own spans belong to the span of this call
                return self._listening.call(copy_context().run, listener, messages, context)
            return self._listening.call(listener, messages, context)

        def register() -> None:
            self._consumer.subscribe(topic, listen, tags=tags, sql=sql)
            self._consumer.core.listeners.register_blocking(topic, listener)

        self._bridge.call(register)

    def unsubscribe(self, topic: str) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.unsubscribe`."""
        self._bridge.run(_called(lambda: self._consumer.unsubscribe(topic)))

    def close(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.close`. It does not wait for a listener that calls it."""
        if (task := self._listening.waiting_task()) is not None:
            self._bridge.call(lambda: self._consumer.core.listeners.closes(task))
        super().close()
        self._listening.close()
        self._noticing.shutdown(wait=False, cancel_futures=True)

    def suspend(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.suspend`."""
        self._bridge.run(_called(self._consumer.suspend))

    def resume(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.resume`."""
        self._bridge.run(_called(self._consumer.resume))


async def _called(function: Callable[[], None]) -> None:
    function()
