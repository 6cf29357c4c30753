"""The base class of blocking decisions: made on a blocking producer."""

from rmqtools import aio
from rmqtools.config.client import check_config
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.producer import Producer


class BlockingDecisionLog(Blocking):
    """A blocking decision log without the methods of one line."""

    def __init__(self, producer: Producer, topic: str) -> None:
        check_config(type(self).__name__, producer, Producer)
        self._log = aio.DecisionLog(producer._producer, topic)
        super().__init__(self._log)
