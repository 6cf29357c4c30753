"""The protocol of allocation strategies, for ours and users' own."""

from collections.abc import Sequence
from typing import Protocol

from rmqtools.model.queue import MessageQueue


class AllocateMessageQueueStrategy(Protocol):
    """Decides which queues one member of a group owns. Pure: no I/O, no clock, no state.

    Guaranteed by :func:`rmqtools.allocate.share`: both lists are sorted as Java sorts and not empty;
    ``client_id`` is among ``client_ids`` (which may name a member twice, as brokers' lists do).
    Owed: equal answers for equal inputs; no queue given to two members.
    """

    @property
    def name(self) -> str:
        """The name in configurations; every member of a group must use the same."""

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the queues of ``client_id``, out of ``queues``."""
