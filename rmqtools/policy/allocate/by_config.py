"""CONFIG: a configured list of queues for each member."""

from collections.abc import Sequence

from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record


@record(kw_only=False)
class AllocateByConfig:
    """A strategy that returns a configured list of queues, independent of the other members.

    Each member has one list, with queues of all its topics. The user must put each queue on exactly one list.
    Source of the rule: AllocateMessageQueueByConfig (Java client).
    """

    queues: Sequence[MessageQueue]
    name = "CONFIG"

    def __post_init__(self) -> None:
        object.__setattr__(self, "queues", tuple(self.queues))

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See the class."""
        return list(self.queues)
