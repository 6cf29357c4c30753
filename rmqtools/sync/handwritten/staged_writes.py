"""The base class of blocking staged writes: made on a blocking producer."""

from rmqtools import aio
from rmqtools.config.client import check_config
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.producer import Producer


class BlockingStagedWrites(Blocking):
    """Blocking staged writes without the methods of one line."""

    def __init__(
        self,
        producer: Producer,
        *,
        topic: str,
        staging_topic: str,
        writer: str,
        settle_seconds: float = 10.0,
        is_recurring: bool = True,
    ) -> None:
        check_config(type(self).__name__, producer, Producer)
        self._writes = aio.StagedWrites(
            producer._producer,
            topic=topic,
            staging_topic=staging_topic,
            writer=writer,
            settle_seconds=settle_seconds,
            is_recurring=is_recurring,
        )
        super().__init__(self._writes)
