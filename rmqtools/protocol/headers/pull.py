"""Headers of receiving: pull, pop, and single messages.

Source of the rule: the header classes of the same names (Java client 5.5.0).
"""

from typing import ClassVar

from rmqtools.model.codes import RequestCode
from rmqtools.model.record import record
from rmqtools.protocol.headers.codec import Header, Int32, Int64, RequestHeader, TopicRequestHeader


@record
class PullMessageRequestHeader(TopicRequestHeader):
    """Read messages of a queue from ``queue_offset`` on.

    ``suspend_timeout_millis`` has an effect only with the suspend bit of ``sys_flag``, ``commit_offset`` only
    with the commit bit. ``proxy_froward_client_id`` is upstream's spelling.
    """

    code: ClassVar[RequestCode] = RequestCode.PULL_MESSAGE

    consumer_group: str
    topic: str
    lite_topic: str | None = None
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64
    suspend_timeout_millis: Int64
    subscription: str | None = None
    sub_version: Int64
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    request_source: Int32 | None = None
    proxy_froward_client_id: str | None = None


@record
class PullMessageResponseHeader(Header):
    """The offset to continue at, and the queue's offsets; the body has the stored messages."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None


@record
class PopMessageRequestHeader(TopicRequestHeader):
    """Let the broker choose messages and hide them for ``invisible_time`` milliseconds (5.x)."""

    code: ClassVar[RequestCode] = RequestCode.POP_MESSAGE

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64
    init_mode: Int32
    exp_type: str | None = None
    exp: str | None = None
    order: bool = False
    attempt_id: str | None = None


@record
class PopMessageResponseHeader(Header):
    """The popped messages' data in upstream's packed texts; the body has the stored messages."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@record
class AckMessageRequestHeader(TopicRequestHeader):
    """Acknowledge one popped message."""

    code: ClassVar[RequestCode] = RequestCode.ACK_MESSAGE

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    lite_topic: str | None = None


@record
class ChangeInvisibleTimeRequestHeader(TopicRequestHeader):
    """Hide a popped message for ``invisible_time`` milliseconds from now on, instead of its earlier time."""

    code: ClassVar[RequestCode] = RequestCode.CHANGE_MESSAGE_INVISIBLETIME

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64
    lite_topic: str | None = None
    suspend: bool = False


@record
class ChangeInvisibleTimeResponseHeader(Header):
    """The values for the message's new extra info."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


@record
class NotificationRequestHeader(TopicRequestHeader):
    """Wait until a message can be popped, at most ``poll_time`` milliseconds."""

    code: ClassVar[RequestCode] = RequestCode.NOTIFICATION

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64
    order: bool = False
    attempt_id: str | None = None
    exp_type: str | None = None
    exp: str | None = None


@record
class NotificationResponseHeader(Header):
    """Answer to a long poll: messages or none; ``polling_full``: too many requests wait, send again."""

    has_msg: bool
    polling_full: bool = False


@record
class ViewMessageRequestHeader(RequestHeader):
    """Read one message by its commit log offset."""

    code: ClassVar[RequestCode] = RequestCode.VIEW_MESSAGE_BY_ID

    topic: str | None = None
    offset: Int64


@record
class QueryMessageRequestHeader(TopicRequestHeader):
    """Find messages of a topic by key or unique key."""

    code: ClassVar[RequestCode] = RequestCode.QUERY_MESSAGE

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    index_type: str | None = None
    last_key: str | None = None


@record
class QueryMessageResponseHeader(Header):
    """The state of the broker's index; the body has the stored messages."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64
