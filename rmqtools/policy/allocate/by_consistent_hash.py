"""CONSISTENT_HASH: a ring of hashes, so that few queues move when members join or leave."""

import hashlib
from bisect import bisect_left
from collections.abc import Sequence

from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record


@record(kw_only=False)
class AllocateByConsistentHash:
    """A queue belongs to the first virtual node at or after its hash on the ring.

    Each member has ``virtual_nodes`` nodes on the ring. Shares are not equal, and a member may get no queue.
    Source of the rule: AllocateMessageQueueConsistentHash and ConsistentHashRouter (Java client).
    """

    virtual_nodes: int = 10  # upstream virtualNodeCnt
    name = "CONSISTENT_HASH"

    def __post_init__(self) -> None:
        if self.virtual_nodes < 0:
            raise ConfigError(f"virtual_nodes={self.virtual_nodes}: want 0 (nobody owns anything) or more")

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See the class."""
        owners = self._ring(client_ids)
        if not owners:
            return []
        ring = sorted(owners)
        places = (bisect_left(ring, consistent_hash(str(queue))) % len(ring) for queue in queues)
        return [
            queue for queue, place in zip(queues, places, strict=True) if owners[ring[place]] == client_id
        ]

    def _ring(self, client_ids: Sequence[str]) -> dict[int, str]:
        """Return the owner of each virtual node's hash. For equal hashes the last node wins."""
        owners: dict[int, str] = {}
        seen: set[str] = set()
        for client_id in client_ids:
            # A member listed twice gets further nodes, counted from those it has on the ring, as in Java.
            first = sum(owner == client_id for owner in owners.values()) if client_id in seen else 0
            seen.add(client_id)
            for number in range(first, first + self.virtual_nodes):
                owners[consistent_hash(f"{client_id}-{number}")] = client_id
        return owners


def consistent_hash(key: str) -> int:
    """Return the first four bytes of the MD5 of the text, as an unsigned number."""
    data = key.encode("utf-8", "replace")
    return int.from_bytes(hashlib.md5(data, usedforsecurity=False).digest()[:4])
