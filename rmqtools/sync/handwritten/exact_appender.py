"""The base class of the blocking exact appender: made on a blocking producer."""

from rmqtools import aio
from rmqtools.config.client import check_config
from rmqtools.model.queue import MessageQueue
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.producer import Producer


class BlockingExactAppender(Blocking):
    """A blocking exact appender without the methods of one line."""

    def __init__(
        self,
        producer: Producer,
        queue: MessageQueue,
        *,
        writer: str,
        origin: str = "",
        settle_seconds: float = 10.0,
        is_new: bool = False,
    ) -> None:
        check_config(type(self).__name__, producer, Producer)
        self._appender = aio.ExactAppender(
            producer._producer,
            queue,
            writer=writer,
            origin=origin,
            settle_seconds=settle_seconds,
            is_new=is_new,
        )
        super().__init__(self._appender)
