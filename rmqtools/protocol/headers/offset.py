"""Headers of offsets: of queues and of consumer groups.

Source of the rule: the header classes of the same names (Java client 5.5.0).
"""

from typing import ClassVar

from rmqtools.model.codes import BoundaryType, RequestCode
from rmqtools.model.record import record
from rmqtools.protocol.headers.codec import Header, Int32, Int64, TopicRequestHeader


@record
class GetMaxOffsetRequestHeader(TopicRequestHeader):
    """A queue's last offset plus 1. ``committed``: count only committed messages."""

    code: ClassVar[RequestCode] = RequestCode.GET_MAX_OFFSET

    topic: str
    queue_id: Int32
    committed: bool = True


@record
class GetMinOffsetRequestHeader(TopicRequestHeader):
    """The first offset that a queue still has."""

    code: ClassVar[RequestCode] = RequestCode.GET_MIN_OFFSET

    topic: str
    queue_id: Int32


@record
class SearchOffsetRequestHeader(TopicRequestHeader):
    """The offset of the message stored at, or next to, a time in milliseconds."""

    code: ClassVar[RequestCode] = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP

    topic: str
    lite_topic: str | None = None
    queue_id: Int32
    timestamp: Int64
    boundary_type: BoundaryType | None = None


@record
class GetEarliestMsgStoretimeRequestHeader(TopicRequestHeader):
    """The store time of the first message that a queue still has."""

    code: ClassVar[RequestCode] = RequestCode.GET_EARLIEST_MSG_STORETIME

    topic: str
    queue_id: Int32


@record
class GetEarliestMsgStoretimeResponseHeader(Header):
    """Milliseconds since 1970."""

    timestamp: Int64


@record
class OffsetResponseHeader(Header):
    """The answer to max, min, search and consumer offset requests."""

    offset: Int64


@record
class QueryConsumerOffsetRequestHeader(TopicRequestHeader):
    """A group's consumer offset. ``set_zero_if_not_found=False``: code 22 if there is none, not 0."""

    code: ClassVar[RequestCode] = RequestCode.QUERY_CONSUMER_OFFSET

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None


@record
class UpdateConsumerOffsetRequestHeader(TopicRequestHeader):
    """Commit a group's consumer offset."""

    code: ClassVar[RequestCode] = RequestCode.UPDATE_CONSUMER_OFFSET

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64


@record
class ResetOffsetRequestHeader(TopicRequestHeader):
    """Move a group's offsets to a time; brokers forward it to clients as RESET_CONSUMER_CLIENT_OFFSET."""

    code: ClassVar[RequestCode] = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET

    group: str
    topic: str
    queue_id: Int32 = -1
    offset: Int64 | None = None
    timestamp: Int64
    is_force: bool
