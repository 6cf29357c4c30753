"""CONFIG: a configured list of queues for each member."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rmqtools.model.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class AllocateByConfig:
    """Always the configured queues, independently of other members.

    Each member has its own list, for all its topics. The user must put each queue on exactly one list.
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
