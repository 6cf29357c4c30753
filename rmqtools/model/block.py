"""A stretch of a queue as the broker sent it, not decoded."""

from collections.abc import Sequence
from dataclasses import dataclass

from rmqtools.model.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """Stored messages of one queue, back to back, in the order of their queue offsets.

    Attributes:
        queue: where they were pulled from.
        buffer: the stored messages' bytes; may hold more than ``starts`` points at.
        starts: where in ``buffer`` each message begins, ascending.
        next_offset: the queue offset to read on from; more than the last message's plus one where
            the broker passed over a gap.
    """

    queue: MessageQueue
    buffer: bytes
    starts: Sequence[int]
    next_offset: int

    def __len__(self) -> int:
        return len(self.starts)
