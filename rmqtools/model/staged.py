"""Values of staged writes: what one commit decided, and how far its copy is."""

from collections.abc import Sequence
from dataclasses import dataclass

from rmqtools.model.queue import MessageQueue, QueueRange

OWN_TOPIC_PREFIX = "RMQTOOLS_"
"""Begin of the names of topics that this package makes for itself: no read should find them."""


def decisions_topic(staging: str) -> str:
    """Return the name of the topic of decisions; a topic that has one holds staged rows."""
    return f"{OWN_TOPIC_PREFIX}DECISIONS-{staging}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedQueue:
    """Part of a commit in one queue.

    Attributes:
        ranges: the rows in a queue of the staging topic, in their order.
        target: the queue that they are copied to.
        since: the end of ``target`` before the first of them was copied.
    """

    ranges: Sequence[QueueRange]
    target: MessageQueue
    since: int

    @property
    def source(self) -> MessageQueue:
        """The queue of the staging topic."""
        return self.ranges[0].queue

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(map(len, self.ranges))


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCommit:
    """Result of a commit.

    Attributes:
        batch: its number.
        rows: rows that were decided, by the first commit with this number.
        copied: rows that this call has copied; the others were in the target already.
        is_first: whether this call has decided; False: an earlier call with this number.
        is_given_up: whether the commit was given up; then its remaining rows are not copied.
    """

    batch: int
    rows: int
    copied: int
    is_first: bool
    is_given_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedStatus:
    """Progress of the last commit of a writer.

    Attributes:
        batch: the number of the last decided commit; None: nothing is decided yet.
        staged: all rows that the staging topic holds: decided ones too, until they expire, and those of
            running and failed tasks.
        decided: rows of that commit.
        copied: those of them that are stored in the target.
        is_finished: whether all of them are stored, or the commit was given up. If the record of the commit
            has expired or was lost, this is False, and ``decided`` and ``copied`` are 0.
    """

    batch: int | None
    staged: int
    decided: int
    copied: int
    is_finished: bool
