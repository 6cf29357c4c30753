"""The enums and the send result of ``rocketmq.client``; members equal the native numbers."""

from enum import IntEnum
from typing import NamedTuple


class SendStatus(IntEnum):
    """Result of a send: stored, and flushed and replicated before the answer or not."""

    OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3


class TransactionStatus(IntEnum):
    """Answers of the callbacks of a transaction."""

    COMMIT = 0
    ROLLBACK = 1
    UNKNOWN = 2


class ConsumeStatus(IntEnum):
    """Answers of a consumer's callback."""

    CONSUME_SUCCESS = 0
    RECONSUME_LATER = 1


class MessageModel(IntEnum):
    """Sharing in a group: every member gets all messages, or the members share them."""

    BROADCASTING = 0
    CLUSTERING = 1


class TraceModel(IntEnum):
    """Switch for trace records; a name of the native client's unpublished master."""

    OPEN = 0
    CLOSE = 1


def is_trace_open(message_trace: bool | TraceModel) -> bool:
    """Return whether a setting of message trace means that records are sent."""
    return message_trace is TraceModel.OPEN or (
        not isinstance(message_trace, TraceModel) and bool(message_trace)
    )


class SendResult(NamedTuple):
    """A stored message. ``msg_id`` equals the ``id`` that consumers see; ``offset`` is its queue offset."""

    status: SendStatus
    msg_id: str
    offset: int
