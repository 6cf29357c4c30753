"""Headers of clients and groups: heartbeats, members, locks, statistics.

Source of the rule: the header classes of the same names (Java client 5.5.0).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from rmqtools.model.codes import RequestCode
from rmqtools.protocol.header_codec import RequestHeader, RpcRequestHeader, TopicRequestHeader, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequestHeader(RpcRequestHeader):
    """A client introduces itself; the body is HeartbeatData."""

    code: ClassVar[RequestCode] = RequestCode.HEART_BEAT


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterClientRequestHeader(RpcRequestHeader):
    """A client leaves its groups."""

    code: ClassVar[RequestCode] = RequestCode.UNREGISTER_CLIENT

    client_id: Annotated[str, Wire("clientID")]
    producer_group: str | None = None
    consumer_group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumerListByGroupRequestHeader(RpcRequestHeader):
    """The client ids of a group."""

    code: ClassVar[RequestCode] = RequestCode.GET_CONSUMER_LIST_BY_GROUP

    consumer_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyConsumerIdsChangedRequestHeader(RpcRequestHeader):
    """A broker tells a client that its group has changed."""

    code: ClassVar[RequestCode] = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED

    consumer_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockBatchMqRequestHeader(RpcRequestHeader):
    """Lock queues for ordered consumption; the body is LockBatchRequestBody."""

    code: ClassVar[RequestCode] = RequestCode.LOCK_BATCH_MQ


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlockBatchMqRequestHeader(RpcRequestHeader):
    """Give locked queues back; the body is UnlockBatchRequestBody."""

    code: ClassVar[RequestCode] = RequestCode.UNLOCK_BATCH_MQ


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAssignmentRequestHeader(RequestHeader):
    """Ask a broker for a member's share (5.x); the body is QueryAssignmentRequestBody."""

    code: ClassVar[RequestCode] = RequestCode.QUERY_ASSIGNMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumeStatsRequestHeader(TopicRequestHeader):
    """How far a group is behind, per queue."""

    code: ClassVar[RequestCode] = RequestCode.GET_CONSUME_STATS

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumerConnectionListRequestHeader(RpcRequestHeader):
    """Who consumes in a group, and what they subscribe to."""

    code: ClassVar[RequestCode] = RequestCode.GET_CONSUMER_CONNECTION_LIST

    consumer_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSubscriptionGroupRequestHeader(RpcRequestHeader):
    """Delete a group on a broker, with its offsets if asked."""

    code: ClassVar[RequestCode] = RequestCode.DELETE_SUBSCRIPTIONGROUP

    group_name: str
    clean_offset: bool = False
