"""Selects the queue of a message: round-robin, avoiding a broker.

Source of the rules: ThreadLocalIndex, TopicPublishInfo, MQFaultStrategy (Java client).
"""

from collections.abc import Callable, Sequence

from rmqtools.model.queue import MessageQueue

QueueFilter = Callable[[MessageQueue], bool]
_POSITIVE_MASK = 0x7FFF_FFFF


class QueueIndex:
    """Java's counter: incremented before use, 32 bits with overflow, returned without its sign bit.

    Threads that share it may get the same position now and then.
    """

    __slots__ = ("value",)

    def __init__(self, start: int) -> None:
        self.value = start

    def next(self) -> int:
        """Increment and return the new position, 0 .. 2**31 - 1."""
        self.value = (self.value + 1 + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000
        return self.value & _POSITIVE_MASK


def select_next(queues: Sequence[MessageQueue], index: QueueIndex) -> MessageQueue:
    """Select the next queue in turn. ``queues`` must not be empty."""
    return queues[index.next() % len(queues)]


def select_filtered(
    queues: Sequence[MessageQueue], index: QueueIndex, filters: Sequence[QueueFilter]
) -> MessageQueue | None:
    """Select the next queue in turn that passes every filter; None if no queue does."""
    for _ in queues:
        queue = select_next(queues, index)
        if all(passes(queue) for passes in filters):
            return queue
    return None


def select_avoiding(
    queues: Sequence[MessageQueue], index: QueueIndex, last_broker_name: str | None
) -> MessageQueue:
    """Select the next queue in turn that is not on the broker that failed last; any queue if all are."""
    if last_broker_name is None:
        return select_next(queues, index)
    found = select_filtered(queues, index, [lambda queue: queue.broker_name != last_broker_name])
    return found or select_next(queues, index)
