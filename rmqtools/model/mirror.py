"""Values of mirrors: the way of a message, and the progress of a mirror."""

from dataclasses import dataclass

from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.message_const import (
    PROPERTY_DLQ_ORIGIN_MESSAGE_ID,
    PROPERTY_DLQ_ORIGIN_TOPIC,
    PROPERTY_INNER_BASE,
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_INNER_NUM,
    PROPERTY_KEYS,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_TIMER_ROLL_LABEL,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_TRANSACTION_ID,
    PROPERTY_TRANSIENT_GROUP_CONFIG,
    PROPERTY_TRANSIENT_TOPIC_CONFIG,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    RESERVED_PROPERTIES,
)
from rmqtools.model.queue import MessageQueue

MIRROR_WAY = "RMQTOOLS_WAY"
"""Property of a copied message: the places that it has passed, ``cluster/topic``, separated by spaces."""

MIRROR_REFUSED = "RMQTOOLS_REFUSED"
"""Property of a message in the topic of refused ones: the reason of the refusal."""

_COPIED = {
    PROPERTY_DLQ_ORIGIN_MESSAGE_ID,
    PROPERTY_DLQ_ORIGIN_TOPIC,
    PROPERTY_KEYS,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
}
NOT_COPIED = frozenset(
    RESERVED_PROPERTIES - _COPIED
    | {
        APPEND_MARK,
        MIRROR_WAY,
        PROPERTY_INNER_BASE,
        PROPERTY_INNER_MULTI_DISPATCH,
        PROPERTY_INNER_NUM,
        PROPERTY_TIMER_DELIVER_MS,
        PROPERTY_TIMER_ROLL_LABEL,
        PROPERTY_TRANSACTION_CHECK_TIMES,
        PROPERTY_TRANSACTION_ID,
        PROPERTY_TRANSIENT_GROUP_CONFIG,
        PROPERTY_TRANSIENT_TOPIC_CONFIG,
    }
)
"""Properties that a copy does not have: those of delays (it would wait twice), transactions, priorities,
requests and brokers, and the mark and the way of the copy before."""


@dataclass(frozen=True, slots=True)
class Place:
    """A topic of a cluster."""

    cluster: str
    topic: str

    def __str__(self) -> str:
        return f"{self.cluster}/{self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMirror:
    """Progress of a mirror in one queue.

    Attributes:
        source: the queue that is copied.
        target: the queue that it is copied to.
        position: the next offset to read in ``source``.
        end: the end of ``source`` when it was last fetched.
        copied: messages stored in ``target`` since the start.
        left_out: messages that the filter, the share or their way left out since the start.
        refused: messages that the target refused, and that were passed, since the start.
        waits_for: the reason why it does not copy now; empty: it copies.
        is_known: whether ``position`` and ``end`` are known; if not, ``lag`` says nothing.
        error: the reason why it has stopped; empty: it has not.
    """

    source: MessageQueue
    target: MessageQueue
    position: int = 0
    end: int = 0
    copied: int = 0
    left_out: int = 0
    refused: int = 0
    waits_for: str = ""
    is_known: bool = False
    error: str = ""

    @property
    def lag(self) -> int:
        """Messages of the source that were not read yet."""
        return max(0, self.end - self.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedOffset:
    """New offset of a group in a copy.

    Attributes:
        source: the queue that was copied.
        source_offset: the group's offset there: the next message that it consumes.
        target: the queue of the copy.
        target_offset: the offset of the same message, or of the first one copied behind it; the end of the
            copy, if there is none yet.
    """

    source: MessageQueue
    source_offset: int
    target: MessageQueue
    target_offset: int
