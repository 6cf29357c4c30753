"""A queue, and a range of its offsets.

Queues sort by UTF-16 code units, as Java's strings do. Members that sorted differently would own queues
twice.
"""

from dataclasses import dataclass, replace
from functools import total_ordering
from typing import Protocol

from rmqtools.model.names import without_this_namespace


def java_order(text: str) -> bytes:
    """Return a sort key that orders text like Java's ``String.compareTo``: by UTF-16 unit, not code point."""
    return text.encode("utf-16-be", "surrogatepass")


class Placed(Protocol):
    """A queue, or a message in one."""

    @property
    def broker_name(self) -> str:
        """The name of the broker."""

    @property
    def queue_id(self) -> int:
        """The number of the queue."""


def queue_name(placed: Placed) -> str:
    """Return ``broker-a:1``: a queue of a topic, as options of commands take it and people read it."""
    return f"{placed.broker_name}:{placed.queue_id}"


@total_ordering
@dataclass(frozen=True, slots=True)
class MessageQueue:
    """One queue of a topic on one broker set.

    Ordered by topic, broker name, queue id. Text compares by UTF-16 unit, like Java's ``String.compareTo``,
    because all members of a group must sort alike.
    Source of the rule: MessageQueue.compareTo (Java client).
    """

    topic: str
    broker_name: str
    queue_id: int

    def __lt__(self, other: "MessageQueue") -> bool:
        return self.sort_key < other.sort_key

    @property
    def sort_key(self) -> tuple[bytes, bytes, int]:
        """The same order as ``<``, about ten times faster: ``sorted(queues, key=lambda q: q.sort_key)``."""
        return java_order(self.topic), java_order(self.broker_name), self.queue_id

    def without_namespace(self, namespace: str | None) -> "MessageQueue":
        """Return the queue with its topic as users know it; the same object if there is no namespace."""
        if not namespace:
            return self
        return replace(self, topic=without_this_namespace(self.topic, namespace))

    def __str__(self) -> str:
        """Return the text of Java's ``toString``, because consistent hashing hashes it."""
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"


@dataclass(frozen=True, slots=True)
class QueueRange:
    """The queue offsets ``[begin, end)`` of one queue."""

    queue: MessageQueue
    begin: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.begin <= self.end:
            raise ValueError(
                f"range of {self.queue}: begin={self.begin}, end={self.end}: want 0 <= begin <= end"
            )

    def __len__(self) -> int:
        return self.end - self.begin

    def starting_at(self, begin: int) -> "QueueRange":
        """Return the rest of this range from ``begin`` on."""
        return replace(self, begin=min(begin, self.end))
