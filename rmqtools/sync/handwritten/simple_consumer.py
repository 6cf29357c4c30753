"""The base class of the blocking simple consumer: its iteration."""

from collections.abc import Iterator
from functools import partial

from rmqtools import aio
from rmqtools.config.simple_consumer import SimpleConsumerConfig
from rmqtools.model.message import MessageExt
from rmqtools.sync.lifecycle import Blocking, ItemsUntilNone


class BlockingSimpleConsumer(Blocking):
    """A blocking simple consumer without the methods of one line."""

    def __init__(self, config: SimpleConsumerConfig) -> None:
        self._consumer: aio.SimpleConsumer = aio.SimpleConsumer(config)
        super().__init__(self._consumer)

    def receive(
        self,
        *,
        max_messages: int | None = None,
        invisible_duration: float | None = None,
        wait: float | None = None,
    ) -> list[MessageExt]:
        """Receive messages, and take them on the calling thread."""
        ready: dict[int, list[MessageExt]] = {}
        receive_into = partial(
            self._consumer._receive_into,
            ready,
            max_messages=max_messages,
            invisible_duration=invisible_duration,
            wait=wait,
        )
        return self._bridge.take(ready, receive_into) or []

    def __iter__(self) -> Iterator[MessageExt]:
        """Yield every message and wait for more, until the consumer is closed. Acknowledge each yourself.

        Messages are received up to ``max_messages`` together. Several iterations share them, and what one
        leaves behind goes to the next; a message whose invisible time ended meanwhile is left out.
        """
        return ItemsUntilNone(self._next)

    def _next(self) -> MessageExt | None:
        """Return the next message of an iteration; None: the consumer is closed."""
        ready: dict[int, list[MessageExt]] = {}
        found = self._bridge.take(ready, lambda: self._consumer._next_into(ready))
        return None if found is None else found[0]
