"""The enums and the send result of ``rocketmq.client``; members equal the native numbers."""

from enum import IntEnum
from typing import NamedTuple


class SendStatus(IntEnum):
    """Whether a stored message was flushed and replicated before the answer."""

    OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3


class TransactionStatus(IntEnum):
    """What callbacks of a transaction return."""

    COMMIT = 0
    ROLLBACK = 1
    UNKNOWN = 2


class ConsumeStatus(IntEnum):
    """What the callback of a consumer returns."""

    CONSUME_SUCCESS = 0
    RECONSUME_LATER = 1


class MessageModel(IntEnum):
    """Whether every member of a group gets all messages, or the members share them."""

    BROADCASTING = 0
    CLUSTERING = 1


class TraceModel(IntEnum):
    """Whether trace records are sent; a name of the native client's unpublished master."""

    OPEN = 0
    CLOSE = 1


class SendResult(NamedTuple):
    """A stored message. ``msg_id`` equals the ``id`` that consumers see; ``offset`` is its queue offset."""

    status: SendStatus
    msg_id: str
    offset: int
