"""The name server of a fake cluster: routes to its brokers, and settings.

Source of the rules: ClientRequestProcessor, DefaultRequestProcessor, RouteInfoManager, KVConfigManager (name
server 5.5.0).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import KVTable, TopicList
from rmqtools.model.route import BrokerData, ClusterInfo, QueueData, TopicRouteData
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.topic import (
    DeleteKVConfigRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    GetRouteInfoRequestHeader,
    PutKVConfigRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from rmqtools.protocol.wire.body_codec import format_body
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing.fake.server import Answer, Peer
from rmqtools.testing.fake.state import refused, succeeded
from rmqtools.testing.fake.topics import TopicConfig, Topics

_ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"


@dataclass(kw_only=True)
class Registered:
    """A broker as a name server knows it; ``addrs`` by broker id, without stopped servers."""

    cluster: str
    topics: Topics
    addrs: dict[int, str] = field(default_factory=dict)


class NameServer:
    """Answers for all known brokers. ``settings`` are this server's, by namespace and key."""

    def __init__(self, brokers: Mapping[str, Registered]) -> None:
        self._brokers = brokers
        self.settings: dict[str, dict[str, str]] = {}
        self._handlers: Mapping[int, Callable[[RemotingCommand], RemotingCommand]] = {
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._cluster_info,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self._topic_list,
            RequestCode.GET_TOPICS_BY_CLUSTER: self._topic_list,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self._delete_topic,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self._wipe,
            RequestCode.PUT_KV_CONFIG: self._put,
            RequestCode.GET_KV_CONFIG: self._get,
            RequestCode.DELETE_KV_CONFIG: self._delete,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self._list,
        }

    def handle(self, request: RemotingCommand, _: Peer) -> Answer:
        """Answer one request."""
        handler = self._handlers.get(request.code)
        if handler is None:
            remark = f" request type {request.code} not supported"
            return refused(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        try:
            return handler(request)
        except ProtocolError as error:
            return refused(ResponseCode.SYSTEM_ERROR, str(error))

    def _known(self) -> dict[str, Registered]:
        return {name: broker for name, broker in self._brokers.items() if broker.addrs}

    def _route(self, request: RemotingCommand) -> RemotingCommand:
        topic = decode_header(GetRouteInfoRequestHeader, request.ext_fields).topic
        homes: dict[str, TopicConfig] = {
            name: config for name, broker in self._known().items() if (config := broker.topics.get(topic))
        }
        if not homes:
            remark = f"No topic route info in name server for the topic: {topic}"
            return refused(ResponseCode.TOPIC_NOT_EXIST, remark)
        route = TopicRouteData(
            queue_datas=tuple(
                QueueData(
                    name,
                    config.read_queue_nums,
                    config.write_queue_nums,
                    self._brokers[name].topics.shown_perm(config),
                    config.topic_sys_flag,
                )
                for name, config in homes.items()
            ),
            broker_datas=tuple(self._broker_data(name) for name in homes),
            order_topic_conf=self.settings.get(_ORDER_NAMESPACE, {}).get(topic),
        )
        return succeeded(body=format_body(route))

    def _wipe(self, request: RemotingCommand) -> RemotingCommand:
        name = decode_header(WipeWritePermOfBrokerRequestHeader, request.ext_fields).broker_name
        topics = self._brokers[name].topics if name in self._brokers else None
        if topics is not None:
            topics.is_wiped = True
        count = 0 if topics is None else len(topics.names)
        return succeeded(WipeWritePermOfBrokerResponseHeader(wipe_topic_count=count))

    def _broker_data(self, name: str) -> BrokerData:
        broker = self._brokers[name]
        return BrokerData(name, dict(broker.addrs), broker.cluster)

    def _cluster_info(self, _: RemotingCommand) -> RemotingCommand:
        clusters: dict[str, tuple[str, ...]] = {}
        for name, broker in self._known().items():
            clusters[broker.cluster] = (*clusters.get(broker.cluster, ()), name)
        table = {name: self._broker_data(name) for name in self._known()}
        return succeeded(body=format_body(ClusterInfo(broker_addr_table=table, cluster_addr_table=clusters)))

    def _topic_list(self, _: RemotingCommand) -> RemotingCommand:
        topics = dict.fromkeys(topic for broker in self._known().values() for topic in broker.topics.names)
        return succeeded(body=format_body(TopicList(topic_list=tuple(topics))))

    def _delete_topic(self, request: RemotingCommand) -> RemotingCommand:
        decode_header(DeleteTopicFromNamesrvRequestHeader, request.ext_fields)
        return succeeded()  # routes are computed from the brokers' topics

    def _put(self, request: RemotingCommand) -> RemotingCommand:
        header = decode_header(PutKVConfigRequestHeader, request.ext_fields)
        self.settings.setdefault(header.namespace, {})[header.key] = header.value
        return succeeded()

    def _get(self, request: RemotingCommand) -> RemotingCommand:
        header = decode_header(GetKVConfigRequestHeader, request.ext_fields)
        value = self.settings.get(header.namespace, {}).get(header.key)
        if value is not None:
            return succeeded(GetKVConfigResponseHeader(value=value))
        remark = f"No config item, Namespace: {header.namespace} Key: {header.key}"
        return refused(ResponseCode.QUERY_NOT_FOUND, remark)

    def _delete(self, request: RemotingCommand) -> RemotingCommand:
        header = decode_header(DeleteKVConfigRequestHeader, request.ext_fields)
        self.settings.get(header.namespace, {}).pop(header.key, None)
        return succeeded()

    def _list(self, request: RemotingCommand) -> RemotingCommand:
        header = decode_header(GetKVListByNamespaceRequestHeader, request.ext_fields)
        table = self.settings.get(header.namespace)
        if table is None:
            remark = f"No config item, Namespace: {header.namespace}"
            return refused(ResponseCode.QUERY_NOT_FOUND, remark)
        return succeeded(body=format_body(KVTable(table=dict(table))))
