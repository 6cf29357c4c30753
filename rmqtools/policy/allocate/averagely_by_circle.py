"""AVG_BY_CIRCLE: one queue to each member in turn."""

from collections.abc import Sequence

from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record


@record(kw_only=False)
class AllocateAveragelyByCircle:
    """One queue to each member in turn, so that each gets queues of several brokers.

    Source of the rule: AllocateMessageQueueAveragelyByCircle (Java client).
    """

    name = "AVG_BY_CIRCLE"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See the class."""
        return list(queues[client_ids.index(client_id) :: len(client_ids)])
