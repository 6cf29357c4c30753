"""Administration of consumer groups: which there are, and their settings. Each broker has its own.

GET_SUBSCRIPTIONGROUP_CONFIG creates the group if it is missing (brokers 5.5.0). To check for a group, fetch
the list of all groups.
"""

from dataclasses import replace
from typing import Literal, Unpack

from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin
from rmqtools.engine.admin.topics import topic_header
from rmqtools.errors import ConfigError, TopicNotFoundError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import MessageRequestMode
from rmqtools.model.group_config import (
    DataVersion,
    GroupSettings,
    SetMessageRequestModeRequestBody,
    SubscriptionGroupConfig,
)
from rmqtools.model.group_view import UnreadableQueues
from rmqtools.model.names import retry_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import Perm
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name
from rmqtools.protocol.headers.group import (
    DeleteSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
    SetMessageRequestModeRequestHeader,
    UpdateSubscriptionGroupRequestHeader,
)
from rmqtools.protocol.wire.bodies import (
    format_body,
    parse_subscription_group,
    parse_subscription_group_table,
)
from rmqtools.protocol.wire.command import request
from rmqtools.unknown_name import unknown_name


class GroupConfigAdmin(GroupOffsetAdmin):
    """The methods about the settings of consumer groups; :class:`rmqtools.aio.Admin` has them all.

    Give group and topic names without the ``namespace`` of the settings: it is added to requests, and removed
    from answers.
    """

    async def fetch_group_list(self) -> list[str]:
        """Return the names of all groups that a master has settings of, sorted; RocketMQ's own included."""
        return [*await self.fetch_all_group_configs()]

    async def has_group(self, group: str, queue: MessageQueue) -> bool:
        """Return whether the master of a queue has a group.

        Fetches the names of all its groups: a request for the settings of one group creates it (5.5.0).

        Raises:
            TopicNotFoundError: the queue's topic has no route.
        """
        return self._wire(group) in await self._table_of(await self._masters.addr_for(queue))

    async def fetch_group_configs(self, group: str) -> dict[str, SubscriptionGroupConfig]:
        """Return a group's settings by broker name; brokers that do not have the group are left out.

        Fetches the settings of all groups: a request for those of one group creates it (5.5.0).
        """
        return (await self.fetch_all_group_configs()).get(group, {})

    async def fetch_all_group_configs(self) -> dict[str, dict[str, SubscriptionGroupConfig]]:
        """Return the settings of all groups by group and broker name, sorted; RocketMQ's own included."""
        tables = await self._masters.each(self._table_of)
        return {
            group: {
                broker: replace(table[wire], group_name=group)
                for broker, table in tables.items()
                if (wire := self._wire(group)) in table
            }
            for group in sorted(self._ours({name for table in tables.values() for name in table}))
        }

    async def create_group(self, group: str, **settings: Unpack[GroupSettings]) -> None:
        """Create a group on all masters, or change one that exists: settings not given stay as they are.

        A new group gets their defaults. With more retry queues than before, the retry topic of a group gets
        them too: members could otherwise not read the messages that brokers store in them.

        Args:
            group: its name.
            settings: see :class:`rmqtools.group.GroupSettings`, e.g. ``retry_max_times=3``.

        Raises:
            MessageRejectedError: a name that brokers refuse; nothing was sent.
            ConfigError: an unknown setting, or a number below 0; nothing was sent.
        """
        check_name("group", group, MAX_GROUP_LENGTH)
        for name, value in settings.items():
            if name not in GroupSettings.__annotations__:
                raise ConfigError(unknown_name("setting of a group", name, GroupSettings.__annotations__))
            if isinstance(value, int) and value < 0:
                raise ConfigError(f"{name} = {value}: want 0 or more")
        new = SubscriptionGroupConfig(group_name=self._wire(group))
        for addr in (await self._masters.addrs_to_change()).values():
            body = format_body(replace(await self._config_of(addr, group) or new, **settings))
            await self._client.remoting.invoke_ok(addr, request(UpdateSubscriptionGroupRequestHeader(), body))
        for hidden in await self._unreadable_retries(group):
            await self._widen(hidden)

    async def set_message_request_mode(
        self,
        topic: str,
        group: str,
        mode: MessageRequestMode | Literal["PULL", "POP"],
        *,
        pop_share_queue_num: int = 0,
    ) -> None:
        """Switch a group between pulling and popping a topic (brokers 5.x), from the next rebalance on.

        Args:
            topic: which topic.
            group: which group.
            mode: PULL or POP.
            pop_share_queue_num: for POP, how many other members also pop a member's queues; 0 or less:
                every member pops all queues.

        Raises:
            ConfigError: no such mode; nothing was sent.
        """
        body = SetMessageRequestModeRequestBody(
            topic=self._wire(topic),
            consumer_group=self._wire(group),
            mode=MessageRequestMode(mode),
            pop_share_queue_num=pop_share_queue_num,
        )
        await self._masters.change_all(SetMessageRequestModeRequestHeader(), format_body(body))

    async def delete_group(self, group: str, *, clean_offset: bool = False) -> None:
        """Delete a group's settings on all brokers. No error if it does not exist.

        Args:
            group: its name.
            clean_offset: delete its consumer offsets too.
        """
        header = DeleteSubscriptionGroupRequestHeader(group_name=self._wire(group), clean_offset=clean_offset)
        await self._masters.change_all(header)

    async def _unreadable_retries(self, group: str) -> list[UnreadableQueues]:
        """Compare the group's retry queues on each broker with those that the route shows."""
        topic = retry_topic(self._wire(group))
        try:
            route = await self._client.name_server.fetch_route(topic)
        except TopicNotFoundError:
            return []  # no message has failed yet
        readable = {data.broker_name: data.read_queue_nums for data in route.queue_datas}
        wanted = await self._retry_queue_nums(group)
        return [
            UnreadableQueues(
                topic=self._bare(topic), broker_name=name, readable=readable[name], written=wanted[name]
            )
            for name in sorted(readable.keys() & wanted.keys())
            if readable[name] < wanted[name]
        ]

    async def _retry_queue_nums(self, group: str) -> dict[str, int]:
        """Return the number of retry queues on each broker; brokers that do not report it are left out."""
        found = await self._masters.each(lambda addr: self._config_of(addr, group))
        return {name: config.retry_queue_nums for name, config in found.items() if config is not None}

    async def _config_of(self, addr: str, group: str) -> SubscriptionGroupConfig | None:
        """Return a group's settings on a broker, which may create the group; None: it has no such group."""
        header = GetSubscriptionGroupConfigRequestHeader(group=self._wire(group))
        answer = await self._client.remoting.invoke(addr, request(header))
        if answer.code == ResponseCode.SUCCESS:
            return parse_subscription_group(answer.body)
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:  # before 5.0
            return (await self._table_of(addr)).get(self._wire(group))
        return None

    async def _widen(self, hidden: UnreadableQueues) -> None:
        """Raise the queues of a group's retry topic on one broker to those that the broker uses."""
        count = hidden.written
        header = topic_header(self._wire(hidden.topic), count, count, Perm.READ | Perm.WRITE)
        masters = await self._masters.addrs_to_change(broker_names=[hidden.broker_name])
        await self._client.remoting.invoke_ok(masters[hidden.broker_name], request(header))

    async def _table_of(self, addr: str) -> dict[str, SubscriptionGroupConfig]:
        """Return the groups of a broker: 5.x answers with parts of the table as long as its version holds.

        If it has another version by now, the broker starts again at its first group, and so does the result.
        """
        groups: dict[str, SubscriptionGroupConfig] = {}
        version: DataVersion | None = None
        while True:
            header = GetAllSubscriptionGroupRequestHeader(
                group_seq=len(groups), data_version=None if version is None else format_body(version).decode()
            )
            answer = await self._client.remoting.invoke_ok(addr, request(header))
            wrapper = parse_subscription_group_table(answer.body)
            if wrapper.data_version != version:
                groups, version = {}, wrapper.data_version
            known = len(groups)
            groups |= wrapper.subscription_group_table
            total = int((answer.ext_fields or {}).get("totalGroupNum") or len(groups))
            if len(groups) >= total or len(groups) == known:
                return groups
