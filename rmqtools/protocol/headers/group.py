"""Headers of clients and groups: heartbeats, members, locks, statistics.

Source of the rule: the header classes of the same names (Java client 5.5.0).
"""

from typing import Annotated, ClassVar

from rmqtools.model.codes import RequestCode
from rmqtools.model.record import record
from rmqtools.protocol.headers.codec import Int32, RequestHeader, RpcRequestHeader, TopicRequestHeader, Wire


@record
class HeartbeatRequestHeader(RpcRequestHeader):
    """A client's heartbeat; the body is HeartbeatData."""

    code: ClassVar[RequestCode] = RequestCode.HEART_BEAT


@record
class UnregisterClientRequestHeader(RpcRequestHeader):
    """A client leaves its groups."""

    code: ClassVar[RequestCode] = RequestCode.UNREGISTER_CLIENT

    client_id: Annotated[str, Wire("clientID")]
    producer_group: str | None = None
    consumer_group: str | None = None


@record
class GetConsumerListByGroupRequestHeader(RpcRequestHeader):
    """The client ids of a group."""

    code: ClassVar[RequestCode] = RequestCode.GET_CONSUMER_LIST_BY_GROUP

    consumer_group: str


@record
class NotifyConsumerIdsChangedRequestHeader(RpcRequestHeader):
    """A broker notifies a client that its group has changed."""

    code: ClassVar[RequestCode] = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED

    consumer_group: str


@record
class LockBatchMqRequestHeader(RpcRequestHeader):
    """Lock queues for ordered consumption; the body is LockBatchRequestBody."""

    code: ClassVar[RequestCode] = RequestCode.LOCK_BATCH_MQ


@record
class UnlockBatchMqRequestHeader(RpcRequestHeader):
    """Unlock queues; the body is UnlockBatchRequestBody."""

    code: ClassVar[RequestCode] = RequestCode.UNLOCK_BATCH_MQ


@record
class QueryAssignmentRequestHeader(RequestHeader):
    """Ask a broker for a member's share (5.x); the body is QueryAssignmentRequestBody."""

    code: ClassVar[RequestCode] = RequestCode.QUERY_ASSIGNMENT


@record
class GetConsumeStatsRequestHeader(TopicRequestHeader):
    """A group's offsets and lag, per queue."""

    code: ClassVar[RequestCode] = RequestCode.GET_CONSUME_STATS

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


@record
class GetConsumerConnectionListRequestHeader(RpcRequestHeader):
    """The members of a group and their subscriptions."""

    code: ClassVar[RequestCode] = RequestCode.GET_CONSUMER_CONNECTION_LIST

    consumer_group: str


@record
class DeleteSubscriptionGroupRequestHeader(RpcRequestHeader):
    """Delete a group on a broker, optionally with its offsets."""

    code: ClassVar[RequestCode] = RequestCode.DELETE_SUBSCRIPTIONGROUP

    group_name: str
    clean_offset: bool = False


@record
class GetAllProducerInfoRequestHeader(RequestHeader):
    """The producers that a broker knows. The answer's body is ProducerTableInfo."""

    code: ClassVar[RequestCode] = RequestCode.GET_ALL_PRODUCER_INFO


@record
class GetAllSubscriptionGroupRequestHeader(RequestHeader):
    """The settings of a broker's groups from ``group_seq`` on; all if ``max_group_num`` is None.

    The answer's body is SubscriptionGroupWrapper.
    """

    code: ClassVar[RequestCode] = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG

    group_seq: Int32
    data_version: str | None = None
    max_group_num: Int32 | None = None


@record
class GetSubscriptionGroupConfigRequestHeader(RpcRequestHeader):
    """The settings of one group; the answer's body is SubscriptionGroupConfig."""

    code: ClassVar[RequestCode] = RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG

    group: str


@record
class UpdateSubscriptionGroupRequestHeader(RequestHeader):
    """Create a group or change its settings; the body is SubscriptionGroupConfig (Java sends no header)."""

    code: ClassVar[RequestCode] = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP


@record
class SetMessageRequestModeRequestHeader(RequestHeader):
    """Switch a group between pulling and popping a topic; the body is the mode (Java sends no header)."""

    code: ClassVar[RequestCode] = RequestCode.SET_MESSAGE_REQUEST_MODE


@record
class QueryTopicConsumeByWhoRequestHeader(TopicRequestHeader):
    """The groups that consume a topic; the answer's body is GroupList."""

    code: ClassVar[RequestCode] = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO

    topic: str


@record
class GetConsumerRunningInfoRequestHeader(RpcRequestHeader):
    """A consumer's report; brokers forward the request to it. The answer's body is ConsumerRunningInfo."""

    code: ClassVar[RequestCode] = RequestCode.GET_CONSUMER_RUNNING_INFO

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


@record
class ConsumeMessageDirectlyResultRequestHeader(TopicRequestHeader):
    """Let one client consume one message; brokers forward it with the stored message as body.

    The answer's body is ConsumeMessageDirectlyResult.
    """

    code: ClassVar[RequestCode] = RequestCode.CONSUME_MESSAGE_DIRECTLY

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None


@record
class GetConsumerStatusRequestHeader(TopicRequestHeader):
    """Consumer offsets in clients' memory; brokers forward it as GET_CONSUMER_STATUS_FROM_CLIENT.

    The body of a client's answer, and of the broker's, is GetConsumerStatusBody.
    """

    code: ClassVar[RequestCode] = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS

    topic: str
    group: str
    client_addr: str | None = None
