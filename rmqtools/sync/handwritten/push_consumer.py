"""The base class of the blocking push consumer: the threads on which its listeners run."""

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

from rmqtools import aio
from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.user_functions import check_listener
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.sync.greenlets import are_sockets_patched
from rmqtools.sync.handwritten.consumer import BlockingConsumer
from rmqtools.sync.listener_threads import ListenerThreads

Answer = ConsumeConcurrentlyStatus | ConsumeOrderlyStatus | None
MessageListener = Callable[[list[MessageExt], ConsumeContext], Answer]


class BlockingPushConsumer(BlockingConsumer[aio.PushConsumer]):
    """A blocking push consumer without the methods of one line."""

    def __init__(self, config: PushConsumerConfig, **given: Any) -> None:
        super().__init__(aio.PushConsumer, config, **given)
        listeners = self._consumer._listeners
        pace = None if config.orderly else listeners.pace
        self._listening = ListenerThreads(config.consume_threads, pace=pace)
        listeners.block_on(self._listening.call, has_sockets=not are_sockets_patched())

    def subscribe(
        self, topic: str, listener: MessageListener, *, tags: str = "*", sql: str | None = None
    ) -> None:
        """Subscribe with a listener that runs on a thread."""
        check_listener(topic, listener, awaited=False)
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
