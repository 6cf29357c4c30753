"""The base class of blocking consumers: the thread of their queue and error listeners."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from rmqtools.config.consumer import ConsumerConfig
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.listeners import MessageQueueListener, errors_off_the_loop, off_the_loop
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.allocate.strategy_table import StrategyName
from rmqtools.sync.lifecycle import Blocking

C = TypeVar("C", bound=Asynchronous)


class BlockingConsumer(Blocking, Generic[C]):
    """The common part of blocking consumers."""

    def __init__(
        self,
        make: Callable[..., C],
        config: ConsumerConfig,
        *,
        strategy: AllocateMessageQueueStrategy | StrategyName | None,
        message_queue_listener: MessageQueueListener | None,
        error_listener: ErrorListener | None,
    ) -> None:
        self._noticing = ThreadPoolExecutor(1, "rmqtools-queue-listener")
        self._consumer = make(
            config,
            strategy=strategy,
            message_queue_listener=off_the_loop(message_queue_listener, self._noticing),
            error_listener=errors_off_the_loop(error_listener, self._noticing),
        )
        super().__init__(self._consumer)

    def close(self) -> None:
        """Close the consumer and the thread of its listeners."""
        was_started = self._may_be_open
        super().close()
        if was_started:  # else it may still be started
            self._noticing.shutdown(wait=False, cancel_futures=True)
