"""Requests to brokers: settings and statistics of topics, names of groups, broker settings."""

import asyncio

from rmqtools.engine.admin.admin import AdminCore
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import BrokerError, TopicNotFoundError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import TopicStatsTable
from rmqtools.model.names import namespace_of, without_this_namespace
from rmqtools.model.route import TopicConfig
from rmqtools.protocol.headers import (
    GetAllSubscriptionGroupRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)
from rmqtools.protocol.headers.codec import RequestHeader
from rmqtools.protocol.wire.bodies import (
    format_body,
    parse_group_list,
    parse_properties_text,
    parse_subscription_group_table,
    parse_topic_config,
    parse_topic_stats,
)
from rmqtools.protocol.wire.command import RemotingCommand, request


class ClusterAdminCore:
    """The coroutines behind :class:`rmqtools.aio.admin_cluster.ClusterAdmin`, where they are described."""

    def __init__(self, client: ClientCore, admin: AdminCore) -> None:
        self._client = client
        self._admin = admin

    async def fetch_topic_configs(self, topic: str) -> dict[str, TopicConfig]:
        """See :meth:`rmqtools.aio.Admin.fetch_topic_configs`."""
        answers = await self._ask_topic(topic, GetTopicConfigRequestHeader(topic=self._wire(topic)))
        return {name: parse_topic_config(answer.body) for name, answer in answers.items()}

    async def fetch_topic_stats(self, topic: str) -> TopicStatsTable:
        """See :meth:`rmqtools.aio.Admin.fetch_topic_stats`."""
        answers = await self._ask_topic(topic, GetTopicStatsInfoRequestHeader(topic=self._wire(topic)))
        stats = [parse_topic_stats(answer.body) for answer in answers.values()]
        table = {
            queue.without_namespace(self._client.config.namespace): offsets
            for each in stats
            for queue, offsets in each.offset_table.items()
        }
        return TopicStatsTable(
            offset_table=dict(sorted(table.items())),
            topic_put_tps=sum(each.topic_put_tps for each in stats),
        )

    async def fetch_broker_config(self, broker_addr: str) -> dict[str, str]:
        """See :meth:`rmqtools.aio.Admin.fetch_broker_config`."""
        command = RemotingCommand(RequestCode.GET_BROKER_CONFIG)
        return parse_properties_text((await self._client.remoting.invoke_ok(broker_addr, command)).body)

    async def fetch_group_list(self) -> list[str]:
        """See :meth:`rmqtools.aio.Admin.fetch_group_list`."""
        masters = await self._admin.fetch_masters()
        tables = await asyncio.gather(*(self._groups_of(addr) for addr in masters.values()))
        return sorted(self._ours({name for names in tables for name in names}))

    async def fetch_topic_groups(self, topic: str) -> list[str]:
        """See :meth:`rmqtools.aio.Admin.fetch_topic_groups`."""
        header = QueryTopicConsumeByWhoRequestHeader(topic=self._wire(topic))
        masters = await self._admin.fetch_masters()
        answers = await asyncio.gather(
            *(self._client.remoting.invoke_ok(addr, request(header)) for addr in masters.values())
        )
        return sorted(self._ours({name for answer in answers for name in parse_group_list(answer.body)}))

    async def _ask_topic(self, topic: str, header: RequestHeader) -> dict[str, RemotingCommand]:
        """Ask the masters of a topic's route; those that do not have the topic are left out."""
        route = await self._admin.fetch_route(topic)
        masters = {
            data.broker_name: data.broker_addrs[0] for data in route.broker_datas if 0 in data.broker_addrs
        }
        ask = self._client.remoting.invoke
        answers = await asyncio.gather(*(ask(addr, request(header)) for addr in masters.values()))
        found: dict[str, RemotingCommand] = {}
        for (name, addr), answer in zip(masters.items(), answers, strict=True):
            if answer.code == ResponseCode.SUCCESS:
                found[name] = answer
            elif answer.code != ResponseCode.TOPIC_NOT_EXIST:
                raise BrokerError(answer.code, answer.remark, addr)
        if masters and not found:
            raise TopicNotFoundError(
                f"topic {topic!r} is in the route, but no broker has it: create it again"
            )
        return found

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

    def _wire(self, name: str) -> str:
        return self._client.wire_topic(name)
