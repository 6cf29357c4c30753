"""The base class of the blocking pull consumer: polls and iterations on the calling thread."""

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from rmqtools import aio
from rmqtools.config.consumer import PullConsumerConfig
from rmqtools.model.message import MessageExt
from rmqtools.sync.handwritten.consumer import BlockingConsumer
from rmqtools.sync.lifecycle import ItemsUntilNone

_MESSAGES_AHEAD = 256  # that calls take without the loop
_MOST_KEPT = 128  # messages taken without the loop until it should remove them from their queues


class BlockingPullConsumer(BlockingConsumer[aio.PullConsumer]):
    """A blocking pull consumer without the methods of one line."""

    def __init__(self, config: PullConsumerConfig, **given: Any) -> None:
        super().__init__(aio.PullConsumer, config, **given)
        self._kept = 0  # messages taken since the loop removed some from their queues

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
        seconds, count = self._consumer._wanted(timeout, max_messages)
        ahead = _MESSAGES_AHEAD if count <= _MESSAGES_AHEAD // 4 else 0  # else few calls would be saved
        return self._take(count, seconds, ahead) or []

    def __iter__(self) -> Iterator[MessageExt]:
        """Yield every message and wait for more, until the consumer is closed.

        Asking for the next message counts the previous one as consumed. After leaving the iteration, a new
        one continues without skipping a message; so does this one after an interrupt. Many messages cross
        the threads together.
        """
        return ItemsUntilNone(self._next)

    def _next(self) -> MessageExt | None:
        """Return the next message of an iteration; None: the consumer is closed."""
        while (found := self._take(1, self._consumer._config.poll_timeout, _MESSAGES_AHEAD)) is None:
            if self._consumer._closing:
                return None
        return found[0]

    def _take(self, count: int, seconds: float, ahead: int) -> list[MessageExt] | None:
        """Take a portion; None: there is none in time. Its callers only return it (:meth:`Bridge.take`)."""
        self._bridge.check()
        consumer = self._consumer
        hand_out = consumer._hand_out
        ready = hand_out.ready_for(count)
        looks_first = hand_out.size == count and not consumer._is_loop_needed
        if looks_first:
            self._kept += count
            if self._kept >= _MOST_KEPT or len(ready) <= 1:
                self._kept = 0
                self._bridge.call_soon(hand_out.note_taken)
        return self._bridge.take(
            ready,
            lambda: consumer._make_ready(count, seconds, ahead=ahead),
            looks_first=looks_first,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer._keeps_last_poll = kind is not None
        self.close()
