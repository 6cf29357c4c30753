"""A queue, and a range of its offsets."""

from dataclasses import dataclass, replace
from functools import total_ordering

from rmqtools.model.names import without_this_namespace


def java_order(text: str) -> bytes:
    """A sort key that orders text as Java's ``String.compareTo`` does: by UTF-16 unit, not by code point."""
    return text.encode("utf-16-be", "surrogatepass")


@total_ordering
@dataclass(frozen=True, slots=True)
class MessageQueue:
    """One queue of a topic on one broker set.

    Ordered by topic, broker name, queue id; text compares by UTF-16 unit as Java's ``String.compareTo``
    does, because all members of a group must sort alike.
    Source of the rule: MessageQueue.compareTo (Java client).
    """

    topic: str
    broker_name: str
    queue_id: int

    def __lt__(self, other: "MessageQueue") -> bool:
        return self.sort_key < other.sort_key

    @property
    def sort_key(self) -> tuple[bytes, bytes, int]:
        """The same order as ``<``, some ten times faster: ``sorted(queues, key=lambda q: q.sort_key)``."""
        return java_order(self.topic), java_order(self.broker_name), self.queue_id

    def without_namespace(self, namespace: str | None) -> "MessageQueue":
        """A queue as users know it, of one as brokers know it; itself where there is no namespace."""
        if not namespace:
            return self
        return replace(self, topic=without_this_namespace(self.topic, namespace))

    def __str__(self) -> str:
        """Java's ``toString``: consistent hashing hashes this very text."""
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
        """The rest of this range from ``begin`` on."""
        return replace(self, begin=min(begin, self.end))
