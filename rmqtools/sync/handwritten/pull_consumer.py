"""The base class of the blocking pull consumer: polls and iterations on the calling thread."""

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from rmqtools import aio
from rmqtools.config.consumer import PullConsumerConfig
from rmqtools.engine.consumer.pull_consumer import MESSAGES_AHEAD
from rmqtools.model.message import MessageExt
from rmqtools.sync.handwritten.consumer import BlockingConsumer


class BlockingPullConsumer(BlockingConsumer[aio.PullConsumer]):
    """A blocking pull consumer without the methods of one line."""

    def __init__(self, config: PullConsumerConfig, **given: Any) -> None:
        super().__init__(aio.PullConsumer, config, **given)

    def poll(self, timeout: float | None = None, max_messages: int | None = None) -> list[MessageExt]:
        """Wait for messages.

        Args:
            timeout: seconds until an empty list is returned; 0: only messages fetched already. None:
                ``poll_timeout``.
            max_messages: the most messages to return; None: ``poll_batch_size``.

        Raises:
            ClientStateError: not started, closed, or nothing is subscribed or assigned.
            ConfigError: an argument is too small.
            BrokerError: a broker has begun to refuse this member for lack of permission; raised once.
        """
        self._bridge.check()
        consumer = self._consumer
        if messages := consumer._poll_ready(timeout, max_messages):
            self._remove_soon()
            return messages
        return self._bridge.run(consumer._poll_ahead(timeout, max_messages))

    def __iter__(self) -> Iterator[MessageExt]:
        """Yield every message and wait for more, until the consumer is closed.

        Asking for the next message counts the previous one as consumed. After leaving the iteration, a new
        one continues without skipping a message. Many messages cross the threads together.
        """
        consumer = self._consumer
        while True:
            message = consumer._next_ready() or self._bridge.run(consumer._next(ahead=MESSAGES_AHEAD))
            if message is None:
                return
            self._remove_soon()
            yield message

    def _remove_soon(self) -> None:
        """Schedule the removal of messages handed out on this thread; do not wait for it."""
        if self._consumer._should_remove:
            self._bridge.tell(self._consumer._remove_handed_out)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer._keeps_last_poll = kind is not None
        self.close()
