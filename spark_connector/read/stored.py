"""Stored offsets of queues, as reported by brokers; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from rmqtools import MessageQueue


@dataclass(frozen=True, slots=True)
class Stored:
    """Per queue, the first stored offset, and the offset of its next message. Both have the same queues."""

    earliest: Mapping[MessageQueue, int]
    latest: Mapping[MessageQueue, int]

    def holds(self, queue: MessageQueue, offset: int) -> bool:
        """Return whether a message is stored at an offset."""
        return queue in self.earliest and self.earliest[queue] <= offset < self.latest[queue]
