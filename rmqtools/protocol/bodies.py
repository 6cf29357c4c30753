"""Bodies of requests and responses by their meaning.

Every ``parse`` raises ProtocolError for what it cannot read.
Source of the rules: the body classes of the Java client that ``model.group`` and ``model.route`` name.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from rmqtools.model.group import (
    ConsumerConnection,
    ConsumerData,
    ConsumeStats,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    KVTable,
    LockBatchRequestBody,
    LockBatchResponseBody,
    ProducerData,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    ResetOffsetBody,
    TopicList,
    TopicStatsTable,
    UnlockBatchRequestBody,
)
from rmqtools.model.group_config import GroupList, SubscriptionGroupConfig, SubscriptionGroupWrapper
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import ClusterInfo, TopicRouteData
from rmqtools.model.running_info import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    GetConsumerStatusBody,
)
from rmqtools.protocol.json_shape import format_body, parse_body
from rmqtools.protocol.loose_json import parse_json

__all__ = [
    "format_body",
    "format_heartbeat",
    "format_lock",
    "format_query_assignment",
    "format_unlock",
    "parse_body",
    "parse_cluster_info",
    "parse_consume_directly",
    "parse_consume_stats",
    "parse_consumer_connection",
    "parse_consumer_list",
    "parse_consumer_status",
    "parse_group_list",
    "parse_json",
    "parse_kv_table",
    "parse_locked_queues",
    "parse_query_assignment",
    "parse_reset_offset",
    "parse_running_info",
    "parse_subscription_group",
    "parse_subscription_groups",
    "parse_topic_list",
    "parse_topic_route",
    "parse_topic_stats",
]


@lru_cache(maxsize=1024)
def parse_topic_route(data: bytes) -> TopicRouteData:
    """GET_ROUTEINFO_BY_TOPIC: where a topic's queues are.

    Remembers what it read: the routes of many topics are alike, and are asked for again and again.
    """
    return parse_body(TopicRouteData, data)


def parse_cluster_info(data: bytes) -> ClusterInfo:
    """GET_BROKER_CLUSTER_INFO: all brokers, all clusters."""
    return parse_body(ClusterInfo, data)


def parse_topic_list(data: bytes) -> tuple[str, ...]:
    """GET_ALL_TOPIC_LIST_FROM_NAMESERVER: topic names."""
    return parse_body(TopicList, data).topic_list


def parse_kv_table(data: bytes) -> dict[str, str]:
    """GET_BROKER_RUNTIME_INFO, GET_KVLIST_BY_NAMESPACE: names and texts."""
    return dict(parse_body(KVTable, data).table)


def parse_topic_stats(data: bytes) -> TopicStatsTable:
    """GET_TOPIC_STATS_INFO: what the queues of a topic hold."""
    return parse_body(TopicStatsTable, data)


def parse_consume_stats(data: bytes) -> ConsumeStats:
    """GET_CONSUME_STATS: how far a group is."""
    return parse_body(ConsumeStats, data)


def parse_consumer_list(data: bytes) -> tuple[str, ...]:
    """GET_CONSUMER_LIST_BY_GROUP: client ids."""
    return parse_body(GetConsumerListByGroupResponseBody, data).consumer_id_list


def parse_consumer_connection(data: bytes) -> ConsumerConnection:
    """GET_CONSUMER_CONNECTION_LIST: members and subscriptions of a group."""
    return parse_body(ConsumerConnection, data)


def parse_locked_queues(data: bytes) -> tuple[MessageQueue, ...]:
    """LOCK_BATCH_MQ: the queues that are now locked for the asker."""
    return parse_body(LockBatchResponseBody, data).lock_ok_mq_set


def parse_query_assignment(data: bytes) -> QueryAssignmentResponseBody:
    """QUERY_ASSIGNMENT: a member's share as the broker computed it."""
    return parse_body(QueryAssignmentResponseBody, data)


def parse_reset_offset(data: bytes) -> ResetOffsetBody:
    """RESET_CONSUMER_CLIENT_OFFSET: offsets a broker tells a client to go to."""
    return parse_body(ResetOffsetBody, data)


def parse_running_info(data: bytes) -> ConsumerRunningInfo:
    """GET_CONSUMER_RUNNING_INFO: what a consumer does."""
    return parse_body(ConsumerRunningInfo, data)


def parse_consume_directly(data: bytes) -> ConsumeMessageDirectlyResult:
    """CONSUME_MESSAGE_DIRECTLY: how a listener took a message."""
    return parse_body(ConsumeMessageDirectlyResult, data)


def parse_consumer_status(data: bytes) -> GetConsumerStatusBody:
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS: how far every client is."""
    return parse_body(GetConsumerStatusBody, data)


def parse_subscription_group(data: bytes) -> SubscriptionGroupConfig:
    """GET_SUBSCRIPTIONGROUP_CONFIG: the settings of one group."""
    return parse_body(SubscriptionGroupConfig, data)


def parse_subscription_groups(data: bytes) -> dict[str, SubscriptionGroupConfig]:
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG: the settings of a broker's groups."""
    return dict(parse_body(SubscriptionGroupWrapper, data).subscription_group_table)


def parse_group_list(data: bytes) -> tuple[str, ...]:
    """QUERY_TOPIC_CONSUME_BY_WHO: group names."""
    return parse_body(GroupList, data).group_list


def format_heartbeat(
    client_id: str, producer_groups: Iterable[str] = (), consumers: Iterable[ConsumerData] = ()
) -> bytes:
    """HEART_BEAT: who the client is, and the groups it belongs to."""
    producers = tuple(ProducerData(group_name=group) for group in producer_groups)
    return format_body(
        HeartbeatData(client_id=client_id, producer_data_set=producers, consumer_data_set=tuple(consumers))
    )


def format_lock(group: str, client_id: str, queues: Sequence[MessageQueue]) -> bytes:
    """LOCK_BATCH_MQ: the queues to lock, all of one broker."""
    return format_body(LockBatchRequestBody(consumer_group=group, client_id=client_id, mq_set=tuple(queues)))


def format_unlock(group: str, client_id: str, queues: Sequence[MessageQueue]) -> bytes:
    """UNLOCK_BATCH_MQ: the queues to give back."""
    return format_body(
        UnlockBatchRequestBody(consumer_group=group, client_id=client_id, mq_set=tuple(queues))
    )


def format_query_assignment(question: QueryAssignmentRequestBody) -> bytes:
    """QUERY_ASSIGNMENT: who asks, for which topic and group, by which strategy."""
    return format_body(question)
