"""CONFIG: a list of queues written down for each member."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rmqtools.model.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class AllocateByConfig:
    """Always the queues it was made with, whoever else is there.

    Each member has a list of its own, for all its topics. That no queue is on two lists, and each on one,
    is up to the user.
    Source of the rule: AllocateMessageQueueByConfig (Java client).
    """

    queues: Sequence[MessageQueue]
    name: ClassVar[str] = "CONFIG"

    def __post_init__(self) -> None:
        object.__setattr__(self, "queues", tuple(self.queues))

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See the class."""
        return list(self.queues)
