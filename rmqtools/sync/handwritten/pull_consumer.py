"""The base class of the blocking pull consumer: polls and iterations on the calling thread."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from rmqtools import aio
from rmqtools.config.consumer import PullConsumerConfig
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.listeners import MessageQueueListener, errors_off_the_loop, off_the_loop
from rmqtools.engine.consumer.pull_consumer import MESSAGES_AHEAD
from rmqtools.model.message import MessageExt
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.sync.lifecycle import Blocking


class BlockingPullConsumer(Blocking):
    """A blocking pull consumer without the methods of one line."""

    def __init__(
        self,
        config: PullConsumerConfig,
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
                lack of permission; may block. ``poll`` raises it too, once, when it has no message. If
                every broker refuses, the start raises.

        Raises:
            ConfigError, MessageRejectedError: a setting or the group name is not valid.
        """
        self._noticing = ThreadPoolExecutor(1, "rmqtools-queue-listener")
        self._consumer = aio.PullConsumer(
            config,
            strategy=strategy,
            message_queue_listener=off_the_loop(message_queue_listener, self._noticing),
            error_listener=errors_off_the_loop(error_listener, self._noticing),
        )
        super().__init__(self._consumer)

    def close(self) -> None:
        """Close the consumer and the thread of its listeners."""
        super().close()
        self._noticing.shutdown(wait=False, cancel_futures=True)

    def poll(self, timeout: float | None = None, max_messages: int | None = None) -> list[MessageExt]:
        """Wait for messages.

        Args:
            timeout: seconds until an empty list is returned; 0: only messages fetched already. None:
                ``poll_timeout``.
            max_messages: the most messages to return; None: ``poll_batch_size``.

        Raises:
            ClientStateError: not started, closed, or nothing is subscribed or assigned.
        """
        self._bridge.check()
        consumer = self._consumer
        if messages := consumer._poll_lent(timeout, max_messages):
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
            message = consumer._next_lent() or self._bridge.run(consumer._next(ahead=MESSAGES_AHEAD))
            if message is None:
                return
            self._remove_soon()
            yield message

    def _remove_soon(self) -> None:
        """Let the loop remove messages handed out on this thread from their queues, without waiting."""
        if self._consumer._should_remove:
            self._bridge.tell(self._consumer._remove_handed_out)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer._keeps_last_poll = kind is not None
        self.close()
