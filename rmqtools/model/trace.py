"""Records of the trace topic: what clients say about messages that they sent or consumed.

Source of the names: TraceType, TraceBean, MessageType, ConsumeReturnType (Java client).
"""

from dataclasses import dataclass
from enum import IntEnum


class TraceMessageType(IntEnum):
    """The kind of a message (MessageType of the Java client, in its order)."""

    NORMAL = 0
    TRANS_HALF = 1
    TRANS_COMMIT = 2
    DELAY = 3
    ORDER = 4


class ConsumeReturnType(IntEnum):
    """Result of a listener call, in the order of the Java client's enumeration."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURNNULL = 3
    FAILED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PubTrace:
    """One stored message, by its producer."""

    timestamp_ms: int
    region_id: str
    group: str
    topic: str
    msg_id: str
    tags: str | None
    keys: str | None
    store_host: str
    body_length: int
    cost_ms: int
    message_type: TraceMessageType
    offset_msg_id: str
    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubBeforeTrace:
    """One message that a listener is about to get.

    Attributes:
        region_id: as the broker has it; None: of a message that was sent in a batch.
        request_id: the same for all messages of the call, and in the record of its end.
        retry_times: how often the message was delivered before.
    """

    timestamp_ms: int
    region_id: str | None
    group: str
    request_id: str
    msg_id: str
    retry_times: int
    keys: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAfterTrace:
    """One message whose listener call has ended.

    Attributes:
        cost_ms: the time of the call, divided by the number of its messages.
        return_type: a member of :class:`ConsumeReturnType`, or a number that a newer client has written.
        timestamp_ms: the time of the end; None: written by a client before 4.9.
        group: the consumer group; None: likewise.
    """

    request_id: str
    msg_id: str
    cost_ms: int
    success: bool
    keys: str | None
    return_type: int = ConsumeReturnType.SUCCESS
    timestamp_ms: int | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionTrace:
    """The decision about a message in a transaction, by its producer.

    Attributes:
        state: COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW.
        from_check: whether a broker had asked for the decision.
    """

    timestamp_ms: int
    group: str
    topic: str
    msg_id: str
    state: str
    from_check: bool


Trace = PubTrace | SubBeforeTrace | SubAfterTrace | EndTransactionTrace
