"""Headers of receiving: pull, pop, and looking at single messages.

Source of the rule: the header classes of the same names (Java client 5.5.0).
"""

from dataclasses import dataclass
from typing import ClassVar

from rmqtools.model.codes import RequestCode
from rmqtools.protocol.header_codec import Header, Int32, Int64, RequestHeader, TopicRequestHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class PullMessageRequestHeader(TopicRequestHeader):
    """Read messages of a queue from ``queue_offset`` on.

    ``suspend_timeout_millis`` counts with the suspend bit of ``sys_flag`` only, ``commit_offset`` with the
    commit bit only. ``proxy_froward_client_id`` is upstream's spelling.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PullMessageResponseHeader(Header):
    """Where to read on, and what the queue holds; the body is stored messages."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PopMessageResponseHeader(Header):
    """Which messages were popped, in upstream's packed texts; the body is stored messages."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AckMessageRequestHeader(TopicRequestHeader):
    """Acknowledge one popped message."""

    code: ClassVar[RequestCode] = RequestCode.ACK_MESSAGE

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    lite_topic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInvisibleTimeRequestHeader(TopicRequestHeader):
    """Hide a popped message for ``invisible_time`` milliseconds from now on, instead of the first time's."""

    code: ClassVar[RequestCode] = RequestCode.CHANGE_MESSAGE_INVISIBLETIME

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64
    lite_topic: str | None = None
    suspend: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInvisibleTimeResponseHeader(Header):
    """What the message's extra info is to be made of from now on."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRequestHeader(TopicRequestHeader):
    """Wait until there is something to pop, ``poll_time`` milliseconds at most."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationResponseHeader(Header):
    """Whether there is; ``polling_full``: too many wait already, ask again."""

    has_msg: bool
    polling_full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMessageRequestHeader(RequestHeader):
    """Read one message by its commit log offset."""

    code: ClassVar[RequestCode] = RequestCode.VIEW_MESSAGE_BY_ID

    topic: str | None = None
    offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMessageResponseHeader(Header):
    """How far the broker's index has come; the body is stored messages."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64
