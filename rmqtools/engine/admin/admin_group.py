"""Administration of consumer groups: members, offsets, settings.

Each broker knows a group's members by their heartbeats, and stores the offsets of its own queues. So all
masters are asked at the same time, and their answers are merged.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from rmqtools.config.text import unknown_name
from rmqtools.engine.admin.admin import AdminCore
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.errors import BrokerError, ConfigError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import Connection, ConsumerConnection, ConsumeStats, MessageRequestMode
from rmqtools.model.group_config import SetMessageRequestModeRequestBody, SubscriptionGroupConfig
from rmqtools.model.names import without_this_namespace
from rmqtools.model.queue import MessageQueue, java_order
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.policy.start_offset import known_offset
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name
from rmqtools.protocol.headers import (
    DeleteSubscriptionGroupRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumeStatsRequestHeader,
    OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    ResetOffsetRequestHeader,
    SetMessageRequestModeRequestHeader,
    UpdateConsumerOffsetRequestHeader,
    UpdateSubscriptionGroupRequestHeader,
    decode_header,
)
from rmqtools.protocol.headers.codec import RequestHeader
from rmqtools.protocol.wire.bodies import (
    format_body,
    parse_consume_stats,
    parse_consumer_connection,
    parse_consumer_list,
    parse_reset_offset,
    parse_running_info,
)
from rmqtools.protocol.wire.command import RemotingCommand, request

log = get_logger(__name__)


class GroupAdminCore:
    """The coroutines behind :class:`rmqtools.aio.admin_group.GroupAdmin`, which documents them."""

    def __init__(self, client: ClientCore, admin: AdminCore) -> None:
        self._client = client
        self._admin = admin

    async def fetch_consumer_offsets(self, group: str, topic: str) -> dict[MessageQueue, int | None]:
        """See :meth:`rmqtools.aio.Admin.fetch_consumer_offsets`."""
        queues = await self._admin.fetch_subscribe_queues(topic)
        offsets = await asyncio.gather(*(self.fetch_consumer_offset(group, queue) for queue in queues))
        return dict(zip(queues, offsets, strict=True))

    async def update_consumer_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """See :meth:`rmqtools.aio.Admin.update_consumer_offset`."""
        check_name("group", group, MAX_GROUP_LENGTH)
        command = request(
            UpdateConsumerOffsetRequestHeader(
                consumer_group=self._wire(group),
                topic=self._wire(queue.topic),
                queue_id=queue.queue_id,
                commit_offset=offset,
                bname=queue.broker_name,
            )
        )
        try:
            answer = await self._admin.ask_master(queue, command)
        except BrokerError as error:
            if error.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            await self._create_where(queue, group)
            answer = await self._admin.ask_master(queue, command)
        if answer.remark:  # the broker answers SUCCESS but stores nothing (useServerSideResetOffset)
            raise RocketMQError(
                f"offset {offset} of group {group!r} for {queue} was not stored: {answer.remark}; "
                "the first pull after a reset makes it possible again"
            )

    async def reset_offsets(self, group: str, topic: str, timestamp_ms: int) -> dict[MessageQueue, int]:
        """See :meth:`rmqtools.aio.Admin.reset_offsets`."""
        queues = await self._admin.fetch_subscribe_queues(topic)
        ours = {queue.broker_name: queue for queue in queues}
        tables = await asyncio.gather(
            *(self._reset_on_broker(group, queue, timestamp_ms) for queue in ours.values())
        )
        offsets = {self._bare_queue(queue): offset for table in tables for queue, offset in table.items()}
        for queue in set(queues) - offsets.keys():
            offsets[queue] = await self._admin.search_offset(queue, timestamp_ms)
            await self.update_consumer_offset(group, queue, offsets[queue])
        return offsets

    async def fetch_consumer_connection(self, group: str) -> ConsumerConnection:
        """See :meth:`rmqtools.aio.Admin.fetch_consumer_connection`."""
        header = GetConsumerConnectionListRequestHeader(consumer_group=self._wire(group))
        answers = await self._ask_masters(header, nothing=ResponseCode.CONSUMER_NOT_ONLINE)
        merged = merge_connections(
            [await parse_aside(parse_consumer_connection, answer.body) for answer in answers]
        )
        table = {self._bare(topic): data for topic, data in merged.subscription_table.items()}
        bare = {topic: replace(data, topic=topic) for topic, data in table.items()}
        return replace(merged, subscription_table=bare)

    async def fetch_consumer_ids(self, group: str) -> list[str]:
        """See :meth:`rmqtools.aio.Admin.fetch_consumer_ids`."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=self._wire(group))
        answers = await self._ask_masters(header, nothing=ResponseCode.SYSTEM_ERROR)  # "no consumer for ..."
        ids = {
            client_id
            for answer in answers
            for client_id in await parse_aside(parse_consumer_list, answer.body)
        }
        return sorted(ids, key=java_order)

    async def fetch_consume_stats(self, group: str, topic: str | None = None) -> ConsumeStats:
        """See :meth:`rmqtools.aio.Admin.fetch_consume_stats`."""
        wire = None if topic is None else self._wire(topic)
        header = GetConsumeStatsRequestHeader(consumer_group=self._wire(group), topic=wire)
        stats = [
            await parse_aside(parse_consume_stats, answer.body) for answer in await self._ask_masters(header)
        ]
        table = {
            self._bare_queue(queue): replace(
                offsets, consumer_offset=known_offset(offsets.consumer_offset) or 0
            )
            for each in stats
            for queue, offsets in each.offset_table.items()
        }
        return ConsumeStats(offset_table=table, consume_tps=sum(each.consume_tps for each in stats))

    async def fetch_running_info(self, group: str, client_id: str) -> ConsumerRunningInfo:
        """See :meth:`rmqtools.aio.Admin.fetch_running_info`."""
        header = GetConsumerRunningInfoRequestHeader(consumer_group=self._wire(group), client_id=client_id)
        refusal = BrokerError(ResponseCode.CONSUMER_NOT_ONLINE, "no broker is there to ask", "nobody")
        for addr in (await self._admin.fetch_masters()).values():
            try:
                answer = await self._client.remoting.invoke_ok(addr, request(header))
            except BrokerError as error:
                refusal = error  # this broker may not know the member, or may have lost its connection
                continue
            return await parse_aside(parse_running_info, answer.body)
        raise refusal

    async def create_group(self, group: str, **settings: Any) -> None:
        """See :meth:`rmqtools.aio.Admin.create_group`."""
        check_name("group", group, MAX_GROUP_LENGTH)
        known = [f.name for f in fields(SubscriptionGroupConfig) if f.name != "group_name"]
        for name in settings.keys() - set(known):
            raise ConfigError(unknown_name("setting of a group", name, known))
        config = SubscriptionGroupConfig(group_name=self._wire(group), **settings)
        await self._ask_masters(UpdateSubscriptionGroupRequestHeader(), format_body(config))

    async def set_message_request_mode(
        self, topic: str, group: str, mode: MessageRequestMode, *, pop_share_queue_num: int
    ) -> None:
        """See :meth:`rmqtools.aio.Admin.set_message_request_mode`."""
        body = SetMessageRequestModeRequestBody(
            topic=self._wire(topic),
            consumer_group=self._wire(group),
            mode=MessageRequestMode(mode),
            pop_share_queue_num=pop_share_queue_num,
        )
        await self._ask_masters(SetMessageRequestModeRequestHeader(), format_body(body))

    async def delete_group(self, group: str, *, clean_offset: bool) -> None:
        """See :meth:`rmqtools.aio.Admin.delete_group`."""
        header = DeleteSubscriptionGroupRequestHeader(group_name=self._wire(group), clean_offset=clean_offset)
        await self._ask_masters(header)

    async def fetch_consumer_offset(self, group: str, queue: MessageQueue) -> int | None:
        """Return a group's offset in one queue; None: it has none."""
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=self._wire(group),
            topic=self._wire(queue.topic),
            queue_id=queue.queue_id,
            set_zero_if_not_found=False,
            bname=queue.broker_name,
        )
        try:
            answer = await self._admin.ask_master(queue, request(header))
        except BrokerError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            return None
        return known_offset(decode_header(OffsetResponseHeader, answer.ext_fields).offset)

    async def _reset_on_broker(
        self, group: str, queue: MessageQueue, timestamp_ms: int
    ) -> Mapping[MessageQueue, int]:
        """Reset offsets on one broker. Empty if it does not: before 5.x it only asks members to reset."""
        header = ResetOffsetRequestHeader(
            group=self._wire(group), topic=self._wire(queue.topic), timestamp=timestamp_ms, is_force=True
        )
        try:
            answer = await self._admin.ask_master(queue, request(header))
        except BrokerError as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
            return {}
        return (await parse_aside(parse_reset_offset, answer.body)).offset_table

    async def _create_where(self, queue: MessageQueue, group: str) -> None:
        """Create a group on the broker of a queue, with that broker's defaults."""
        body = format_body(SubscriptionGroupConfig(group_name=self._wire(group)))
        await self._admin.ask_master(queue, request(UpdateSubscriptionGroupRequestHeader(), body))
        log.info("group_created", group=group, broker=queue.broker_name)

    async def _ask_masters(
        self, header: RequestHeader, body: bytes = b"", *, nothing: ResponseCode | None = None
    ) -> list[RemotingCommand]:
        """Ask all masters at once; leave out those that answer ``nothing``.

        Raises:
            RocketMQError: the first error, because a result that lacks a broker would be wrong.
        """
        masters = await self._admin.fetch_masters()
        ask = self._client.remoting.invoke
        answers = await asyncio.gather(*(ask(addr, request(header, body)) for addr in masters.values()))
        for addr, answer in zip(masters.values(), answers, strict=True):
            if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise self._client.endpoint.not_served(header.code, answer.remark, addr)
            if answer.code not in (ResponseCode.SUCCESS, nothing):
                raise BrokerError(answer.code, answer.remark, addr)
        return [answer for answer in answers if answer.code == ResponseCode.SUCCESS]

    def _wire(self, name: str) -> str:
        return self._client.wire_topic(name)

    def _bare(self, name: str) -> str:
        return without_this_namespace(name, self._client.config.namespace)

    def _bare_queue(self, queue: MessageQueue) -> MessageQueue:
        return queue.without_namespace(self._client.config.namespace)


def merge_connections(answers: Sequence[ConsumerConnection]) -> ConsumerConnection:
    """Merge the members that several brokers know: each once, by client id.

    A member has a connection to each broker; its address is that of one of them.
    """
    members: dict[str, Connection] = {}
    merged = ConsumerConnection()
    for answer in answers:
        members |= {member.client_id: member for member in answer.connection_set}
        merged = replace(
            answer, subscription_table={**merged.subscription_table, **answer.subscription_table}
        )
    ordered = sorted(members, key=java_order)
    return replace(merged, connection_set=tuple(members[client_id] for client_id in ordered))
