"""Parses and formats the bodies of requests and responses.

Every ``parse`` raises ProtocolError for invalid data.
Source of the rules: the body classes of the Java client that ``model.group`` and ``model.route`` name.
"""

from collections.abc import Iterable, Sequence

from rmqtools.errors import ProtocolError
from rmqtools.model.group import (
    ConsumerConnection,
    ConsumerData,
    ConsumeStats,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    HeartbeatSyncerData,
    KVTable,
    LockBatchRequestBody,
    LockBatchResponseBody,
    ProducerData,
    ProducerInfo,
    ProducerTableInfo,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    ResetOffsetBody,
    TopicList,
    TopicStatsTable,
    UnlockBatchRequestBody,
)
from rmqtools.model.group_config import GroupList, SubscriptionGroupConfig, SubscriptionGroupWrapper
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import ClusterInfo, TopicConfig, TopicRouteData
from rmqtools.model.running_info import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    GetConsumerStatusBody,
)
from rmqtools.protocol.wire.body_codec import format_body, parse_body
from rmqtools.protocol.wire.loose_json import parse_json

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
    "parse_properties_text",
    "parse_proxy_heartbeat",
    "parse_query_assignment",
    "parse_reset_offset",
    "parse_running_info",
    "parse_subscription_group",
    "parse_subscription_group_table",
    "parse_subscription_groups",
    "parse_topic_config",
    "parse_topic_list",
    "parse_topic_route",
    "parse_topic_stats",
]


MAX_ROUTE_BYTES = 4 * 1024 * 1024
MAX_REQUEST_BYTES = 4 * 1024 * 1024  # of a broker's own request that is JSON
_MAX_ROUTES = 1024
_MAX_ROUTES_BYTES = 4 * 1024 * 1024  # of all remembered bodies


class _ParsedRoutes:
    """Routes by the bodies they were read from, within bounds: forgets all of them when it is full."""

    def __init__(self) -> None:
        self._routes: dict[bytes, TopicRouteData] = {}
        self._total_bytes = 0
        self.get = self._routes.get

    def put(self, data: bytes, route: TopicRouteData) -> None:
        """Remember a route; not one whose body would take more than an eighth of the room."""
        if len(data) > _MAX_ROUTES_BYTES // 8:
            return
        if len(self._routes) >= _MAX_ROUTES or self._total_bytes + len(data) > _MAX_ROUTES_BYTES:
            self._routes.clear()
            self._total_bytes = 0
        self._routes[data] = route
        self._total_bytes += len(data)


_parsed_routes = _ParsedRoutes()


def parse_topic_route(data: bytes) -> TopicRouteData:
    """GET_ROUTEINFO_BY_TOPIC: the brokers and queues of a topic.

    Caches parsed routes, up to 4 MiB of bodies: many topics have equal routes, and all are polled.

    Raises:
        ProtocolError: no route, or a body above 4 MiB.
    """
    if len(data) > MAX_ROUTE_BYTES:
        raise ProtocolError(f"route of {len(data)} bytes: at most {MAX_ROUTE_BYTES} are read")
    route = _parsed_routes.get(data)
    if route is None:
        route = parse_body(TopicRouteData, data)
        _parsed_routes.put(data, route)
    return route


def parse_cluster_info(data: bytes) -> ClusterInfo:
    """GET_BROKER_CLUSTER_INFO: all brokers, all clusters."""
    return parse_body(ClusterInfo, data)


def parse_topic_list(data: bytes) -> tuple[str, ...]:
    """GET_ALL_TOPIC_LIST_FROM_NAMESERVER: topic names."""
    return parse_body(TopicList, data).topic_list


def parse_producers(data: bytes) -> dict[str, tuple[ProducerInfo, ...]]:
    """GET_ALL_PRODUCER_INFO: the producers that a broker knows, by producer group."""
    return dict(parse_body(ProducerTableInfo, data).data)


def parse_kv_table(data: bytes) -> dict[str, str]:
    """GET_BROKER_RUNTIME_INFO, GET_KVLIST_BY_NAMESPACE: names and texts."""
    return dict(parse_body(KVTable, data).table)


def parse_topic_stats(data: bytes) -> TopicStatsTable:
    """GET_TOPIC_STATS_INFO: the offsets of a topic's queues."""
    return parse_body(TopicStatsTable, data)


def parse_consume_stats(data: bytes) -> ConsumeStats:
    """GET_CONSUME_STATS: a group's consumer offsets."""
    return parse_body(ConsumeStats, data)


def parse_consumer_list(data: bytes) -> tuple[str, ...]:
    """GET_CONSUMER_LIST_BY_GROUP: client ids."""
    return parse_body(GetConsumerListByGroupResponseBody, data).consumer_id_list


def parse_consumer_connection(data: bytes) -> ConsumerConnection:
    """GET_CONSUMER_CONNECTION_LIST: members and subscriptions of a group."""
    return parse_body(ConsumerConnection, data)


def parse_proxy_heartbeat(data: bytes) -> HeartbeatSyncerData:
    """Body of a message of the topic by which proxies share the heartbeats of their consumers."""
    return parse_body(HeartbeatSyncerData, data)


def parse_locked_queues(data: bytes) -> tuple[MessageQueue, ...]:
    """LOCK_BATCH_MQ: the queues that are now locked for the requesting member."""
    return parse_body(LockBatchResponseBody, data).lock_ok_mq_set


def parse_query_assignment(data: bytes) -> QueryAssignmentResponseBody:
    """QUERY_ASSIGNMENT: a member's share as the broker computed it."""
    return parse_body(QueryAssignmentResponseBody, data)


def parse_reset_offset(data: bytes) -> ResetOffsetBody:
    """RESET_CONSUMER_CLIENT_OFFSET: the offsets that a client shall move to.

    Raises:
        ProtocolError: no such body, or one above 4 MiB.
    """
    if len(data) > MAX_REQUEST_BYTES:
        raise ProtocolError(f"offsets to reset in {len(data)} bytes: at most {MAX_REQUEST_BYTES} are read")
    return parse_body(ResetOffsetBody, data)


def parse_running_info(data: bytes) -> ConsumerRunningInfo:
    """GET_CONSUMER_RUNNING_INFO: a consumer's report."""
    return parse_body(ConsumerRunningInfo, data)


def parse_consume_directly(data: bytes) -> ConsumeMessageDirectlyResult:
    """CONSUME_MESSAGE_DIRECTLY: the result of a listener's call."""
    return parse_body(ConsumeMessageDirectlyResult, data)


def parse_consumer_status(data: bytes) -> GetConsumerStatusBody:
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS: the offsets in every client's memory."""
    return parse_body(GetConsumerStatusBody, data)


def parse_subscription_group(data: bytes) -> SubscriptionGroupConfig:
    """GET_SUBSCRIPTIONGROUP_CONFIG: the settings of one group."""
    return parse_body(SubscriptionGroupConfig, data)


def parse_subscription_group_table(data: bytes) -> SubscriptionGroupWrapper:
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG: the settings of a broker's groups, and the version of its table."""
    return parse_body(SubscriptionGroupWrapper, data)


def parse_subscription_groups(data: bytes) -> dict[str, SubscriptionGroupConfig]:
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG: the settings of a broker's groups."""
    return dict(parse_subscription_group_table(data).subscription_group_table)


def parse_topic_config(data: bytes) -> TopicConfig:
    """GET_TOPIC_CONFIG: the settings of a topic."""
    return parse_body(TopicConfig, data)


def parse_properties_text(data: bytes) -> dict[str, str]:
    """GET_BROKER_CONFIG: ``name=value`` lines; empty lines and those without ``=`` are left out.

    Source of the rule: MixAll.properties2String (Java): values are written as they are, without escapes.
    """
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"settings that are not UTF-8: {error}") from error
    split = [line.partition("=") for line in lines if "=" in line]
    return {name.strip(): value.strip() for name, _, value in split}


def parse_group_list(data: bytes) -> tuple[str, ...]:
    """QUERY_TOPIC_CONSUME_BY_WHO: group names."""
    return parse_body(GroupList, data).group_list


def format_heartbeat(
    client_id: str, producer_groups: Iterable[str] = (), consumers: Iterable[ConsumerData] = ()
) -> bytes:
    """HEART_BEAT: the client's id and its groups."""
    producers = tuple(ProducerData(group_name=group) for group in producer_groups)
    return format_body(
        HeartbeatData(client_id=client_id, producer_data_set=producers, consumer_data_set=tuple(consumers))
    )


def format_lock(group: str, client_id: str, queues: Sequence[MessageQueue]) -> bytes:
    """LOCK_BATCH_MQ: the queues to lock, all of one broker."""
    return format_body(LockBatchRequestBody(consumer_group=group, client_id=client_id, mq_set=tuple(queues)))


def format_unlock(group: str, client_id: str, queues: Sequence[MessageQueue]) -> bytes:
    """UNLOCK_BATCH_MQ: the queues to unlock."""
    return format_body(
        UnlockBatchRequestBody(consumer_group=group, client_id=client_id, mq_set=tuple(queues))
    )


def format_query_assignment(question: QueryAssignmentRequestBody) -> bytes:
    """QUERY_ASSIGNMENT: the member, its topic and group, and the strategy."""
    return format_body(question)
