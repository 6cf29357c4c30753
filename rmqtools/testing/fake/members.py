"""Producers and consumers, known by their heartbeats, and the locks on queues.

Source of the rules: ClientManageProcessor, ConsumerManager, DefaultConsumerIdsChangeListener,
RebalanceLockManager (broker 5.5.0).
"""

from dataclasses import dataclass, field, replace

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import (
    Connection,
    ConsumerConnection,
    ConsumerData,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    ProducerInfo,
    ProducerTableInfo,
    SubscriptionData,
    UnlockBatchRequestBody,
)
from rmqtools.model.group_config import GroupList
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.policy.subscription import TAG
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.group import (
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    NotifyConsumerIdsChangedRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
    UnregisterClientRequestHeader,
)
from rmqtools.protocol.wire.bodies import parse_json
from rmqtools.protocol.wire.body_codec import format_body, parse_body
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, request
from rmqtools.testing.fake.server import Peer, Server
from rmqtools.testing.fake.state import Handlers, State, refused, succeeded


@dataclass
class _ConsumerGroup:
    """A consumer group: its members by connection, and its last heartbeat with the newest subscriptions."""

    data: ConsumerData
    peers: dict[Peer, str] = field(default_factory=dict)


class Members:
    """The members of all groups."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._consumers: dict[str, _ConsumerGroup] = {}
        self._producers: dict[str, list[Peer]] = {}
        self._clients: dict[str, Peer] = {}  # producers by client id
        self._ghosts: dict[tuple[str, str], Peer] = {}
        self._reports: dict[tuple[str, str], ConsumerRunningInfo | None] = {}
        self.handlers: Handlers = {
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._list,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self._list_connections,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._running_info,
            RequestCode.GET_ALL_PRODUCER_INFO: self._list_producers,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self._list_groups,
            RequestCode.CHECK_CLIENT_CONFIG: self._check_client,
            RequestCode.LOCK_BATCH_MQ: self._lock,
            RequestCode.UNLOCK_BATCH_MQ: self._unlock,
        }

    def client_ids(self, group: str) -> list[str]:
        """Return the members of a consumer group: one entry for each connection."""
        known = self._consumers.get(group)
        return [] if known is None else [*known.peers.values()]

    def add(self, group: str, client_id: str, report: ConsumerRunningInfo | None = None) -> None:
        """Add a member that has no connection, or change the report of one."""
        if (group, client_id) not in self._ghosts:
            ghost = self._ghosts[group, client_id] = Peer(Server(lambda *_: None))
            self._join(ConsumerData(group_name=group), client_id, ghost)
        self._reports[group, client_id] = report

    def remove(self, group: str, client_id: str) -> None:
        """Remove a member that :meth:`add` added."""
        self._leave(group, self._ghosts.pop((group, client_id)))
        del self._reports[group, client_id]

    def producer(self, group: str) -> Peer | None:
        """Return the connection of one member of a producer group."""
        return next((peer for peer in self._producers.get(group, ()) if peer.is_open), None)

    def client(self, client_id: str) -> Peer | None:
        """Return the connection of a client that is a producer."""
        return self._clients.get(client_id)

    def subscription(self, group: str, topic: str) -> SubscriptionData | None:
        """Return the group's subscription of a topic."""
        known = self._consumers.get(group)
        told = () if known is None else known.data.subscription_data_set
        return next((data for data in told if data.topic == topic), None)

    def lock_owner(self, group: str, queue: MessageQueue) -> str | None:
        """Return the client that has locked a queue."""
        owner, until = self._state.locks.get((group, queue), (None, 0.0))
        return owner if self._state.timers.monotonic() < until else None

    def forget(self, peer: Peer) -> None:
        """Remove the client of a closed connection."""
        for peers in self._producers.values():
            if peer in peers:
                peers.remove(peer)
        for client_id in [name for name, other in self._clients.items() if other is peer]:
            del self._clients[client_id]
        for group in [name for name, known in self._consumers.items() if peer in known.peers]:
            self._leave(group, peer)

    def _heartbeat(self, command: RemotingCommand, peer: Peer) -> RemotingCommand:
        data = parse_body(HeartbeatData, command.body)
        client_id = data.client_id or ""
        for producer in data.producer_data_set:
            peers = self._producers.setdefault(producer.group_name, [])
            if peer not in peers:
                peers.append(peer)
            self._clients[client_id] = peer
        for consumer in data.consumer_data_set:
            self._join(consumer, client_id, peer)
        answer = succeeded()
        answer.ext_fields = {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"}
        return answer

    def _join(self, data: ConsumerData, client_id: str, peer: Peer) -> None:
        group = self._state.group(data.group_name)
        self._state.topics.retry(data.group_name, group.retry_queue_nums)
        known = self._consumers.setdefault(data.group_name, _ConsumerGroup(data))
        is_news = known.peers.get(peer) != client_id or _topics(known.data) != _topics(data)
        known.peers[peer] = client_id
        known.data = replace(data, subscription_data_set=_newest(known.data, data))
        if is_news:
            self._notify(data.group_name)

    def _list_producers(self, _command: RemotingCommand, _: Peer) -> RemotingCommand:
        now_ms = self._state.timers.now_ms()
        names = {id(peer): client_id for client_id, peer in self._clients.items()}
        table = {
            group: tuple(
                ProducerInfo(
                    client_id=names.get(id(peer), ""),
                    remote_ip=f"/{peer.addr}",
                    language="PYTHON",
                    last_update_timestamp=now_ms,
                )
                for peer in peers
            )
            for group, peers in self._producers.items()
            if peers
        }
        return succeeded(body=format_body(ProducerTableInfo(data=table)))

    def _leave(self, group: str, peer: Peer) -> None:
        known = self._consumers[group]
        del known.peers[peer]
        if not known.peers:
            del self._consumers[group]
        self._notify(group)

    def _notify(self, group: str) -> None:
        """Notify all members that the members have changed."""
        if not self._state.group(group).notify_consumer_ids_changed_enable or group not in self._consumers:
            return
        notice = request(NotifyConsumerIdsChangedRequestHeader(consumer_group=group), oneway=True)
        for peer in self._consumers[group].peers:
            peer.write(encode_command(notice))

    def _unregister(self, command: RemotingCommand, peer: Peer) -> RemotingCommand:
        header = decode_header(UnregisterClientRequestHeader, command.ext_fields)
        producers = self._producers.get(header.producer_group or "", [])
        if peer in producers:
            producers.remove(peer)
        group = header.consumer_group or ""
        if group in self._consumers and peer in self._consumers[group].peers:
            self._leave(group, peer)
        return succeeded()

    def _list(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(GetConsumerListByGroupRequestHeader, command.ext_fields)
        if ids := self.client_ids(header.consumer_group):
            return succeeded(
                body=format_body(GetConsumerListByGroupResponseBody(consumer_id_list=tuple(ids)))
            )
        remark = f"no consumer for this group, {header.consumer_group}"
        return refused(ResponseCode.SYSTEM_ERROR, remark)

    def _list_groups(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        topic = decode_header(QueryTopicConsumeByWhoRequestHeader, command.ext_fields).topic
        online = {group for group, known in self._consumers.items() if topic in _topics(known.data)}
        stored = {group for group, name, _ in self._state.offsets if name == topic}
        return succeeded(body=format_body(GroupList(group_list=tuple(online | stored))))

    def _check_client(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        kind = parse_json(command.body)["subscriptionData"].get("expressionType", TAG)
        if kind == TAG:
            return succeeded()
        remark = f"The broker does not support consumer to filter message by {kind}"
        return refused(ResponseCode.SYSTEM_ERROR, remark)

    def _list_connections(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(GetConsumerConnectionListRequestHeader, command.ext_fields)
        known = self._consumers.get(header.consumer_group)
        if known is None:
            remark = f"the consumer group[{header.consumer_group}] not online"
            return refused(ResponseCode.CONSUMER_NOT_ONLINE, remark)
        connections = tuple(
            Connection(client_id=client_id, client_addr=peer.addr, language="PYTHON", version=command.version)
            for peer, client_id in known.peers.items()
        )
        body = ConsumerConnection(
            connection_set=connections,
            subscription_table={data.topic: data for data in known.data.subscription_data_set},
            consume_type=known.data.consume_type,
            message_model=known.data.message_model,
            consume_from_where=known.data.consume_from_where,
        )
        return succeeded(body=format_body(body))

    def _running_info(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        """Return a member's report on itself: of members without a connection, that which they were given."""
        header = decode_header(GetConsumerRunningInfoRequestHeader, command.ext_fields)
        report = self._reports.get((header.consumer_group, header.client_id))
        if report is None:
            remark = f"The Consumer <{header.consumer_group}> <{header.client_id}> not online"
            return refused(ResponseCode.CONSUMER_NOT_ONLINE, remark)
        return succeeded(body=format_body(report))

    def _lock(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        wanted = parse_body(LockBatchRequestBody, command.body)
        until = self._state.timers.monotonic() + self._state.settings.lock_seconds
        free = (None, wanted.client_id)
        locked = [queue for queue in wanted.mq_set if self.lock_owner(wanted.consumer_group, queue) in free]
        for queue in locked:
            self._state.locks[wanted.consumer_group, queue] = (wanted.client_id, until)
        return succeeded(body=format_body(LockBatchResponseBody(lock_ok_mq_set=tuple(locked))))

    def _unlock(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        given_back = parse_body(UnlockBatchRequestBody, command.body)
        for queue in given_back.mq_set:
            if self.lock_owner(given_back.consumer_group, queue) == given_back.client_id:
                del self._state.locks[given_back.consumer_group, queue]
        return succeeded()


def _topics(data: ConsumerData) -> set[str]:
    """Return the subscribed topics of a group. Members are notified of new topics, not of new expressions."""
    return {one.topic for one in data.subscription_data_set}


def _newest(before: ConsumerData, data: ConsumerData) -> tuple[SubscriptionData, ...]:
    """Return the newer subscription of each topic in a heartbeat: the known one or that of the heartbeat."""
    known = {one.topic: one for one in before.subscription_data_set}
    told = [(known.get(one.topic, one), one) for one in data.subscription_data_set]
    return tuple(new if new.sub_version > old.sub_version else old for old, new in told)
