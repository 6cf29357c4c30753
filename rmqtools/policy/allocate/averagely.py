"""AVG: contiguous blocks of queues, as equal as possible."""

from collections.abc import Sequence

from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record


@record(kw_only=False)
class AllocateAveragely:
    """Contiguous blocks; the first ``len(queues) % len(client_ids)`` members get one more.

    Source of the rule: AllocateMessageQueueAveragely (Java client).
    """

    name = "AVG"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See the class."""
        index = client_ids.index(client_id)
        size, extra = divmod(len(queues), len(client_ids))
        start = index * size + min(index, extra)
        return list(queues[start : start + size + (index < extra)])
