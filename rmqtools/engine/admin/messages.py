"""Administration of single messages: finds them, and their consumption by the groups of their topic."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from rmqtools.engine.admin.groups import GroupAdmin
from rmqtools.engine.admin.masters import brokers_of, reader
from rmqtools.errors import BrokerError, ConfigError, MessageRejectedError, ProtocolError, RocketMQError
from rmqtools.model.block import CorruptBody, MessageBlock
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import ConsumerConnection, MessageModel
from rmqtools.model.group_view import MessageTrack, TrackType
from rmqtools.model.message import MessageExt
from rmqtools.model.names import without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import BrokerData, ClusterInfo, TopicRouteData
from rmqtools.policy.endpoint.features import MESSAGE_QUERIES
from rmqtools.protocol.headers.pull import QueryMessageRequestHeader, ViewMessageRequestHeader
from rmqtools.protocol.messages.found import decode_single
from rmqtools.protocol.messages.message_id import parse_offset_msg_id
from rmqtools.protocol.messages.stored import message_starts, queue_id_at, queue_offset_at
from rmqtools.protocol.messages.stored_block import decode_stored
from rmqtools.protocol.wire.command import request

_FOREVER_MS = 2**63 - 1  # Long.MAX_VALUE
_UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"  # MixAll.UNIQUE_MSG_QUERY_FLAG
_MOST_BY_KEY = 64  # brokers' maxMsgsNumBatch
_MOST_BY_UNIQUE_KEY = 32  # brokers' defaultQueryMaxNum
_INDEX_STEP_MS = 1000  # an index entry's time is up to this much before the message's


class MessageAdmin(GroupAdmin):
    """The methods about single messages; :class:`rmqtools.aio.Admin` has them all."""

    async def view_message(self, offset_msg_id: str) -> MessageExt:
        """Return the message with an offset message id: address and place in the commit log, as hex digits.

        If its body cannot be read, ``body`` raises a :class:`rmqtools.errors.CorruptBodyError`.

        Raises:
            MessageRejectedError: not 32 or 56 hex digits, or a port of 0; nothing was sent.
            BrokerError: there is no message at that place: it has expired, or the id is another broker's.
            RemotingConnectError: there is no broker at the address of the id.
        """
        try:
            addr, offset = parse_offset_msg_id(offset_msg_id)
        except ProtocolError as error:
            raise MessageRejectedError(f"{error}; find a client's message id by its topic instead") from error
        answer = await self._client.remoting.invoke_ok(addr, request(ViewMessageRequestHeader(offset=offset)))
        message = decode_single(
            answer.body,
            max_body_bytes=self._client.config.max_decompressed_bytes,
            broker_name=await self._broker_name(addr),
        )
        return self._without_namespace(message)

    async def query_messages(
        self,
        topic: str,
        key: str,
        *,
        unique: bool = False,
        begin_ms: int = 0,
        end_ms: int = _FOREVER_MS,
        max_num: int = 64,
    ) -> list[MessageExt]:
        """Find messages of a topic in the brokers' key index, which lags behind sends by some milliseconds.

        Args:
            topic: the topic.
            key: one of the message's keys; with ``unique``, its unique key (the ``msg_id`` of its result).
            unique: whether ``key`` is a unique key.
            begin_ms: only messages stored at or after this time, in milliseconds since 1970.
            end_ms: only messages stored at or before this time.
            max_num: the most messages to return.

        Returns:
            The messages, oldest first; none if no broker has one. Where a body cannot be read, ``body``
            raises a :class:`rmqtools.errors.CorruptBodyError`, which names queue and queue offset.

        Raises:
            TopicNotFoundError: there is no such topic.

        Source of the rule: MQAdminImpl.queryMessage (Java client).
        """
        route = await self._client.name_server.fetch_route(self._wire(topic))
        self._client.endpoint.require(MESSAGE_QUERIES)
        header = QueryMessageRequestHeader(
            topic=self._client.wire_topic(topic),
            key=key,
            max_num=max_num,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
        )
        bodies = await self._masters.each(
            lambda addr: self._query_body(addr, header, unique=unique), brokers_of(route)
        )
        found = [
            message
            for name, body in bodies.items()
            for message in self._stored(body, message_starts(body), name, header.topic, "null")
        ]
        exact = [message for message in found if _has_key(message, key, unique=unique)]
        return sorted(exact, key=lambda m: (m.store_timestamp_ms, m.broker_name, m.commit_log_offset))[
            :max_num
        ]

    async def query_all_messages(
        self,
        topic: str,
        key: str,
        *,
        unique: bool = False,
        begin_ms: int = 0,
        end_ms: int = _FOREVER_MS,
        corrupt_body: CorruptBody = "fail",
    ) -> list[MessageExt]:
        """Find every message of a topic with a key, however many there are; see :meth:`query_messages`.

        A broker returns at most 64 messages, or 32 for a unique key: older ones are requested by their time.

        Args:
            topic: the topic.
            key: one of the message's keys; with ``unique``, its unique key.
            unique: whether ``key`` is a unique key.
            begin_ms: only messages stored at or after this time, in milliseconds since 1970.
            end_ms: only messages stored at or before this time.
            corrupt_body: handling of a message whose body cannot be read, see :meth:`read_messages`.

        Returns:
            The messages, by broker, queue and offset.

        Raises:
            ConfigError: a broker has so many messages with this key in one second that it cannot return all.
            TopicNotFoundError: there is no such topic.
            CorruptBodyError: a body that cannot be read; the text names queue and queue offset.
        """
        route = await self._client.name_server.fetch_route(self._wire(topic))
        self._client.endpoint.require(MESSAGE_QUERIES)
        header = QueryMessageRequestHeader(
            topic=self._client.wire_topic(topic),
            key=key,
            max_num=_MOST_BY_KEY,
            begin_timestamp=max(begin_ms - _INDEX_STEP_MS, 0),
            end_timestamp=end_ms,
        )
        found = await self._query_all(route, header, unique=unique, corrupt_body=corrupt_body)
        return [
            message
            for message in sorted(found, key=lambda m: (m.broker_name, m.queue_id, m.queue_offset))
            if message.topic == topic
            and begin_ms <= message.store_timestamp_ms <= end_ms
            and _has_key(message, key, unique=unique)
        ]

    async def fetch_message_track(self, message: MessageExt) -> list[MessageTrack]:
        """Return whether each group of a message's topic has consumed it, by the groups' consumer offsets.

        An offset shows what was committed: a message whose listener failed counts as consumed, because its
        group has it in the retry topic. Groups that pop have no offset to compare.

        Args:
            message: from :meth:`view_message` or :meth:`query_messages`; ``broker_name`` must be set.
        """
        groups = await self.fetch_topic_groups(message.topic)
        return list(await asyncio.gather(*(self._track(message, group) for group in groups)))

    async def _query_all(
        self,
        route: TopicRouteData,
        header: QueryMessageRequestHeader,
        *,
        unique: bool,
        corrupt_body: CorruptBody,
    ) -> list[MessageExt]:
        """All messages of a topic with the hash code of a key, from its brokers."""
        brokers = brokers_of(route)
        by_addr = {reader(data): data for data in brokers.values()}
        pages = await self._masters.each(
            lambda addr: self._query_pages(by_addr[addr], header, unique=unique, corrupt_body=corrupt_body),
            brokers,
        )
        return [message for page in pages.values() for message in page]

    async def _query_pages(
        self, data: BrokerData, header: QueryMessageRequestHeader, *, unique: bool, corrupt_body: CorruptBody
    ) -> list[MessageExt]:
        """All messages of a broker with the hash code of a key, from the newest page to the oldest.

        Source of the rule: IndexFile.selectPhyOffset and QueryMessageProcessor (broker 5.5.0): an answer has
        the newest messages, at most 64, or 32 by unique key; index entries have whole seconds.
        """
        most = _MOST_BY_UNIQUE_KEY if unique else _MOST_BY_KEY
        addr = reader(data)
        found: dict[tuple[int, int], MessageExt] = {}
        while True:
            body = await self._query_body(addr, header, unique=unique)
            starts, known = message_starts(body), len(found)
            page = self._stored(body, starts, data.broker_name, header.topic, corrupt_body)
            found |= {(message.queue_id, message.queue_offset): message for message in page}
            if len(starts) < most:
                return list(found.values())
            oldest = min(message.store_timestamp_ms for message in page)
            if len(found) == known:
                raise ConfigError(
                    f"key {header.key!r} of topic {header.topic!r}: broker {data.broker_name} has more than "
                    f"{most} messages with this key in the second of {oldest} (ms since 1970), and its index "
                    "returns no more: read the topic from that time on, and compare the keys"
                )
            header = replace(header, end_timestamp=oldest)

    def _stored(
        self, body: bytes, starts: Sequence[int], broker_name: str, topic: str, corrupt_body: CorruptBody
    ) -> list[MessageExt]:
        """Decode messages of several queues."""
        found, most = [], self._client.config.max_decompressed_bytes
        for start in starts:
            queue = MessageQueue(topic, broker_name, queue_id_at(body, start))
            block = MessageBlock(queue, body, (start,), queue_offset_at(body, start) + 1, most)
            found += decode_stored(block, start, corrupt_body=corrupt_body)
        return [self._without_namespace(message) for message in found]

    async def _query_body(self, addr: str, header: QueryMessageRequestHeader, *, unique: bool) -> bytes:
        """Return the messages of an answer as they are stored; empty if there is none."""
        command = request(header)
        if unique:
            command.ext_fields = {**(command.ext_fields or {}), _UNIQUE_KEY_QUERY: "true"}
        answer = await self._client.remoting.invoke(addr, command)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return b""
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise self._client.endpoint.not_served(command.code, answer.remark, addr)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, addr)
        return bytes(answer.body or b"")

    async def _track(self, message: MessageExt, group: str) -> MessageTrack:
        queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
        try:
            connection = await self.fetch_consumer_connection(group)
            offset = await self._fetch_consumer_offset(group, queue)
        except RocketMQError as error:
            return MessageTrack(consumer_group=group, track_type=TrackType.UNKNOWN, error=str(error))
        return MessageTrack(
            consumer_group=group,
            track_type=_track_type(message, connection, offset),
            consumer_offset=offset,
            is_online=bool(connection.connection_set),
        )

    async def _broker_name(self, addr: str) -> str:
        def named(info: ClusterInfo) -> str:
            brokers = info.broker_addr_table.values()
            return next((data.broker_name for data in brokers if addr in data.broker_addrs.values()), "")

        return named(await self._client.name_server.fetch_cluster_info(lambda info: bool(named(info))))

    def _without_namespace(self, message: MessageExt) -> MessageExt:
        return message.with_topic(without_this_namespace(message.topic, self._client.config.namespace))


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
