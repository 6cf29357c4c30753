"""MACHINE_ROOM: only the queues of brokers in some machine rooms."""

from collections.abc import Collection, Sequence

from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record


@record(kw_only=False)
class AllocateByMachineRoom:
    """Contiguous blocks of the queues whose broker name is ``room@name`` with a room of ``consumer_idcs``.

    Queues left over by the division come from the end of the list, one for each of the first members.
    Queues of all other brokers have no owner in this group.
    Source of the rule: AllocateMessageQueueByMachineRoom (Java client).
    """

    consumer_idcs: Collection[str]
    name = "MACHINE_ROOM"

    def __post_init__(self) -> None:
        if isinstance(self.consumer_idcs, str):
            raise ConfigError(f"consumer_idcs={self.consumer_idcs!r}: want several rooms, e.g. ['room-1']")

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See the class."""
        mine = [queue for queue in queues if self._serves(queue.broker_name)]
        index, size = client_ids.index(client_id), len(mine) // len(client_ids)
        after_blocks = size * len(client_ids) + index
        return mine[index * size : (index + 1) * size] + mine[after_blocks : after_blocks + 1]

    def _serves(self, broker_name: str) -> bool:
        parts = broker_name.rstrip("@").split("@")  # Java's split drops empty parts at the end
        return len(parts) == 2 and parts[0] in self.consumer_idcs
