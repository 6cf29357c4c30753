"""The base class of the blocking simple consumer: its iteration."""

from collections.abc import Iterator

from rmqtools import aio
from rmqtools.config.simple_consumer import SimpleConsumerConfig
from rmqtools.model.message import MessageExt
from rmqtools.sync.lifecycle import Blocking


class BlockingSimpleConsumer(Blocking):
    """A blocking simple consumer without the methods of one line."""

    def __init__(self, config: SimpleConsumerConfig) -> None:
        self._consumer: aio.SimpleConsumer = aio.SimpleConsumer(config)
        super().__init__(self._consumer)

    def __iter__(self) -> Iterator[MessageExt]:
        """Yield every message and wait for more, until the consumer is closed. Acknowledge each yourself.

        Messages are received up to ``max_messages`` together. Several iterations share them, and what one
        leaves behind goes to the next; a message whose invisible time ended meanwhile is left out.
        """
        while (message := self._bridge.run(self._consumer._next())) is not None:
            yield message
