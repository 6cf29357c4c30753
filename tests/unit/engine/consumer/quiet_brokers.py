"""A broker set that leaves some requests without an answer."""

from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing import Reaction
from tests.unit.engine.consumer.pull_scene import BrokerSet


class QuietBrokers(BrokerSet):
    """``silent``: request codes that get no answer."""

    def __init__(self, high: int = 100, *, queues: int = 1) -> None:
        self.silent: set[int] = set()
        super().__init__(high, queues=queues)

    def count_of(self, code: int) -> int:
        """How many requests of a code have come."""
        return len(self.of(RequestCode(code)))

    def left(self) -> int:
        """How often a member has left the group."""
        return self.count_of(RequestCode.UNREGISTER_CLIENT)

    def _refuse(self, request: RemotingCommand) -> RemotingCommand | Reaction:
        return Reaction.SWALLOW if request.code in self.silent else super()._refuse(request)
