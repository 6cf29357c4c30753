"""Finds single messages, and their consumption by the groups of their topic."""

import asyncio

from rmqtools.engine.admin.admin import AdminCore
from rmqtools.engine.admin.admin_cluster import ClusterAdminCore
from rmqtools.engine.admin.admin_group import GroupAdminCore
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import BrokerError, MessageRejectedError, ProtocolError, RocketMQError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import ConsumerConnection, MessageModel
from rmqtools.model.group_view import MessageTrack, TrackType
from rmqtools.model.message import MessageExt
from rmqtools.model.names import without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.endpoint.features import MESSAGE_QUERIES
from rmqtools.protocol.headers import QueryMessageRequestHeader, ViewMessageRequestHeader
from rmqtools.protocol.messages.message_id import parse_offset_msg_id
from rmqtools.protocol.messages.stored import decode_messages
from rmqtools.protocol.wire.command import request

_UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"  # MixAll.UNIQUE_MSG_QUERY_FLAG


class MessageAdminCore:
    """The coroutines behind :class:`rmqtools.aio.admin_message.MessageAdmin`, where they are described."""

    def __init__(
        self, client: ClientCore, admin: AdminCore, groups: GroupAdminCore, cluster: ClusterAdminCore
    ) -> None:
        self._client = client
        self._admin = admin
        self._groups = groups
        self._cluster = cluster

    async def view_message(self, offset_msg_id: str) -> MessageExt:
        """See :meth:`rmqtools.aio.Admin.view_message`."""
        try:
            addr, offset = parse_offset_msg_id(offset_msg_id)
        except ProtocolError as error:
            raise MessageRejectedError(f"{error}; find a client's message id by its topic instead") from error
        answer = await self._client.remoting.invoke_ok(addr, request(ViewMessageRequestHeader(offset=offset)))
        (message,) = self._decoded(answer.body, await self._broker_name(addr))
        return message

    async def query_messages(
        self, topic: str, key: str, *, unique: bool, begin_ms: int, end_ms: int, max_num: int
    ) -> list[MessageExt]:
        """See :meth:`rmqtools.aio.Admin.query_messages`."""
        route = await self._admin.fetch_route(topic)
        self._client.endpoint.require(MESSAGE_QUERIES)
        header = QueryMessageRequestHeader(
            topic=self._client.wire_topic(topic),
            key=key,
            max_num=max_num,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
        )
        asked = [
            self._query(data.broker_addrs[0], data.broker_name, header, unique=unique)
            for data in route.broker_datas
            if 0 in data.broker_addrs
        ]
        found = [message for messages in await asyncio.gather(*asked) for message in messages]
        exact = [message for message in found if _has_key(message, key, unique=unique)]
        return sorted(exact, key=lambda m: (m.store_timestamp_ms, m.broker_name, m.commit_log_offset))[
            :max_num
        ]

    async def fetch_message_track(self, message: MessageExt) -> list[MessageTrack]:
        """See :meth:`rmqtools.aio.Admin.fetch_message_track`."""
        groups = await self._cluster.fetch_topic_groups(message.topic)
        return list(await asyncio.gather(*(self._track(message, group) for group in groups)))

    async def _query(
        self, addr: str, broker_name: str, header: QueryMessageRequestHeader, *, unique: bool
    ) -> list[MessageExt]:
        command = request(header)
        if unique:
            command.ext_fields = {**(command.ext_fields or {}), _UNIQUE_KEY_QUERY: "true"}
        answer = await self._client.remoting.invoke(addr, command)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return []
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise self._client.endpoint.not_served(command.code, answer.remark, addr)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, addr)
        return self._decoded(answer.body, broker_name)

    async def _track(self, message: MessageExt, group: str) -> MessageTrack:
        queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
        try:
            connection = await self._groups.fetch_consumer_connection(group)
            offset = await self._groups.fetch_consumer_offset(group, queue)
        except RocketMQError as error:
            return MessageTrack(consumer_group=group, track_type=TrackType.UNKNOWN, error=str(error))
        return MessageTrack(
            consumer_group=group,
            track_type=_track_type(message, connection, offset),
            consumer_offset=offset,
            is_online=bool(connection.connection_set),
        )

    async def _broker_name(self, addr: str) -> str:
        info = await self._admin.fetch_cluster_info()
        named = info.broker_addr_table.values()
        return next((data.broker_name for data in named if addr in data.broker_addrs.values()), "")

    def _decoded(self, body: bytes, broker_name: str) -> list[MessageExt]:
        namespace = self._client.config.namespace
        return [
            message.with_topic(without_this_namespace(message.topic, namespace))
            for message in decode_messages(body, broker_name=broker_name)
        ]


def _has_key(message: MessageExt, key: str, *, unique: bool) -> bool:
    """Brokers compare hash codes only."""
    return message.msg_id == key if unique else key in (message.keys or "").split()


def _track_type(message: MessageExt, connection: ConsumerConnection, offset: int | None) -> TrackType:
    """Decide by the group's offset; the subscription shows whether the tag was wanted.

    Source of the rule: DefaultMQAdminExtImpl.messageTrackDetail (Java). Ours decides by the offset whether
    or not members are there, and however they fetch.
    """
    if connection.message_model == MessageModel.BROADCASTING:
        return TrackType.CONSUME_BROADCASTING
    if offset is None or offset <= message.queue_offset:
        return TrackType.NOT_CONSUME_YET
    subscription = connection.subscription_table.get(message.topic)
    tags = () if subscription is None else subscription.tags_set
    wanted = not tags or "*" in tags or message.tags in tags
    return TrackType.CONSUMED if wanted else TrackType.CONSUMED_BUT_FILTERED
