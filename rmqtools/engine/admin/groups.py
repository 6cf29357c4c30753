"""Administration of consumer groups: members, settings, and all information about a group together.

Each broker knows the members that send it heartbeats, so requests go to all masters at the same time, and the
answers are merged.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from typing import Any

from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.errors import (
    BrokerError,
    ConfigError,
    PermissionDeniedError,
    RocketMQError,
    TopicNotFoundError,
)
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import Connection, ConsumerConnection, MessageRequestMode
from rmqtools.model.group_config import SetMessageRequestModeRequestBody, SubscriptionGroupConfig
from rmqtools.model.group_view import GroupMember, GroupView, QueueProgress
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX, namespace_of, without_this_namespace
from rmqtools.model.queue import MessageQueue, java_order
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.policy.group_member import member_of, silent_member
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name
from rmqtools.protocol.headers import (
    DeleteSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
    SetMessageRequestModeRequestHeader,
    UpdateSubscriptionGroupRequestHeader,
)
from rmqtools.protocol.wire.bodies import (
    format_body,
    parse_consumer_connection,
    parse_consumer_list,
    parse_group_list,
    parse_running_info,
    parse_subscription_group_table,
)
from rmqtools.protocol.wire.command import request
from rmqtools.unknown_name import unknown_name


class GroupAdmin(GroupOffsetAdmin):
    """The methods about consumer groups; :class:`rmqtools.aio.Admin` has them all.

    Give group and topic names without the ``namespace`` of the settings: it is added to requests, and removed
    from the topics of answers.
    """

    async def fetch_group(self, group: str) -> GroupView:
        """Return everything about a group: members, the queues each says it owns, offsets and lag.

        A member that does not answer has its ``error`` set. Every other failure raises.
        """
        connection = await self.fetch_consumer_connection(group)
        members = await asyncio.gather(*(self._member(group, each) for each in connection.connection_set))
        stats = await self.fetch_consume_stats(group)
        topics = {queue.topic for queue in stats.offset_table} | connection.subscription_table.keys()
        topics |= {topic for member in members for topic, _, _ in member.subscriptions}
        progress, missing = await self._progress(group, topics)
        return GroupView(
            group=group,
            message_model=connection.message_model,
            consume_type=connection.consume_type,
            members=tuple(members),
            progress=progress,
            missing_topics=missing,
        )

    async def fetch_group_list(self) -> list[str]:
        """Return the names of all groups that a master has settings of, sorted; RocketMQ's own included."""
        masters = await self._masters.addrs()
        tables = await asyncio.gather(*(self._groups_of(addr) for addr in masters.values()))
        return sorted(self._ours({name for names in tables for name in names}))

    async def fetch_topic_groups(self, topic: str) -> list[str]:
        """Return the groups that have members subscribed to a topic, or offsets of it, sorted."""
        header = QueryTopicConsumeByWhoRequestHeader(topic=self._wire(topic))
        masters = await self._masters.addrs()
        answers = await asyncio.gather(
            *(self._client.remoting.invoke_ok(addr, request(header)) for addr in masters.values())
        )
        return sorted(self._ours({name for answer in answers for name in parse_group_list(answer.body)}))

    async def fetch_consumer_connection(self, group: str) -> ConsumerConnection:
        """Return the members of a group and their subscriptions, collected from all brokers.

        Brokers know a member at the latest 30 s after its start, and for 2 minutes after it was killed.

        Returns:
            Members by client id, each once; no members if no broker knows one.
        """
        header = GetConsumerConnectionListRequestHeader(consumer_group=self._wire(group))
        answers = await self._masters.invoke_all(header, nothing=ResponseCode.CONSUMER_NOT_ONLINE)
        merged = merge_connections(
            [await parse_aside(parse_consumer_connection, answer.body) for answer in answers]
        )
        table = {self._bare(topic): data for topic, data in merged.subscription_table.items()}
        bare = {topic: replace(data, topic=topic) for topic, data in table.items()}
        return replace(merged, subscription_table=bare)

    async def fetch_consumer_ids(self, group: str) -> list[str]:
        """Return the client ids of a group's members, collected from all brokers, in Java's order."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=self._wire(group))
        # SYSTEM_ERROR: "no consumer for ..."
        answers = await self._masters.invoke_all(header, nothing=ResponseCode.SYSTEM_ERROR)
        ids = {
            client_id
            for answer in answers
            for client_id in await parse_aside(parse_consumer_list, answer.body)
        }
        return sorted(ids, key=java_order)

    async def fetch_running_info(self, group: str, client_id: str) -> ConsumerRunningInfo:
        """Return a member's own report: settings, subscriptions, queues. Its broker forwards the request.

        Raises:
            BrokerError: no broker has a connection to the member, or the member did not answer the broker.
            RemotingTimeoutError: no answer within ``request_timeout``; a broker gives a member 10 s.
        """
        header = GetConsumerRunningInfoRequestHeader(consumer_group=self._wire(group), client_id=client_id)
        refusal = BrokerError(ResponseCode.CONSUMER_NOT_ONLINE, "no broker is there to ask", "nobody")
        for addr in (await self._masters.addrs()).values():
            try:
                answer = await self._client.remoting.invoke_ok(addr, request(header))
            except BrokerError as error:
                refusal = error  # this broker may not know the member, or may have lost its connection
                continue
            return await parse_aside(parse_running_info, answer.body)
        raise refusal

    async def create_group(self, group: str, **settings: Any) -> None:
        """Create a group on all brokers, or change one that exists: settings not given get their default.

        Args:
            group: its name.
            settings: those of ``SubscriptionGroupConfig`` in snake_case: ``retry_max_times=16``,
                ``consume_enable=True``, ``consume_message_orderly=False``, ``consume_timeout_minute=15``, ...

        Raises:
            MessageRejectedError: a name that brokers refuse; nothing was sent.
            ConfigError: an unknown setting.
        """
        check_name("group", group, MAX_GROUP_LENGTH)
        known = [f.name for f in fields(SubscriptionGroupConfig) if f.name != "group_name"]
        for name in settings.keys() - set(known):
            raise ConfigError(unknown_name("setting of a group", name, known))
        config = SubscriptionGroupConfig(group_name=self._wire(group), **settings)
        await self._masters.invoke_all(UpdateSubscriptionGroupRequestHeader(), format_body(config))

    async def set_message_request_mode(
        self, topic: str, group: str, mode: MessageRequestMode, *, pop_share_queue_num: int = 0
    ) -> None:
        """Switch a group between pulling and popping a topic (brokers 5.x), from the next rebalance on.

        Args:
            topic: which topic.
            group: which group.
            mode: PULL or POP.
            pop_share_queue_num: for POP, how many other members also pop a member's queues; 0 or less:
                every member pops all queues.
        """
        body = SetMessageRequestModeRequestBody(
            topic=self._wire(topic),
            consumer_group=self._wire(group),
            mode=MessageRequestMode(mode),
            pop_share_queue_num=pop_share_queue_num,
        )
        await self._masters.invoke_all(SetMessageRequestModeRequestHeader(), format_body(body))

    async def delete_group(self, group: str, *, clean_offset: bool = False) -> None:
        """Delete a group's settings on all brokers. No error if it does not exist.

        Args:
            group: its name.
            clean_offset: delete its consumer offsets too.
        """
        header = DeleteSubscriptionGroupRequestHeader(group_name=self._wire(group), clean_offset=clean_offset)
        await self._masters.invoke_all(header)

    async def _member(self, group: str, connection: Connection) -> GroupMember:
        try:
            info = await self.fetch_running_info(group, connection.client_id)
        except RocketMQError as error:
            return silent_member(connection, str(error))
        return member_of(connection, info, self._client.config.namespace)

    async def _progress(
        self, group: str, topics: Collection[str]
    ) -> tuple[dict[MessageQueue, QueueProgress], tuple[str, ...]]:
        """Return the group's progress on the topics' queues, and the topics missing or not readable."""
        progress: dict[MessageQueue, QueueProgress] = {}
        missing: list[str] = []
        for topic in sorted(topics):
            try:
                progress |= await self._topic_progress(group, topic)
            except (TopicNotFoundError, PermissionDeniedError):
                # a retry topic is created when a message fails, or by a heartbeat
                if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                    missing.append(topic)
        return progress, tuple(missing)

    async def _topic_progress(self, group: str, topic: str) -> dict[MessageQueue, QueueProgress]:
        offsets = await self.fetch_consumer_offsets(group, topic)
        ends = await asyncio.gather(*(self.max_offset(queue) for queue in offsets))
        return {
            queue: QueueProgress(max_offset=end, consumer_offset=offset)
            for (queue, offset), end in zip(offsets.items(), ends, strict=True)
        }

    async def _groups_of(self, addr: str) -> set[str]:
        """All groups of a broker: 5.x answers with parts of the table as long as its version holds."""
        names: set[str] = set()
        version: str | None = None
        while True:
            header = GetAllSubscriptionGroupRequestHeader(group_seq=len(names), data_version=version)
            answer = await self._client.remoting.invoke_ok(addr, request(header))
            wrapper = parse_subscription_group_table(answer.body)
            known = len(names)
            names |= wrapper.subscription_group_table.keys()
            total = int((answer.ext_fields or {}).get("totalGroupNum") or len(names))
            if len(names) >= total or len(names) == known:
                return names
            version = None if wrapper.data_version is None else format_body(wrapper.data_version).decode()

    def _ours(self, names: set[str]) -> set[str]:
        """Without the namespace of the settings; names of other namespaces are left out."""
        namespace = self._client.config.namespace
        if not namespace:
            return names
        return {without_this_namespace(name, namespace) for name in names if namespace_of(name) == namespace}


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
