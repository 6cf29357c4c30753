"""Administration of topics: names, routes, settings, statistics.

A broker 5.5.0 without timer wheel deletes a topic and then answers with a NullPointerException.
``Admin.delete_topic`` checks whether the topic is gone.
"""

import asyncio
from collections.abc import Mapping, Sequence

from rmqtools.engine.admin.masters import AdminPart, brokers_of
from rmqtools.errors import BrokerError, RemotingTimeoutError, TopicNotFoundError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import TopicStatsTable
from rmqtools.model.names import MAX_TOPIC_LENGTH
from rmqtools.model.route import Perm, TopicConfig, TopicRouteData
from rmqtools.model.topic_type import TopicMessageType, TopicTypeName
from rmqtools.policy.endpoint.features import TOPIC_ATTRIBUTES
from rmqtools.policy.endpoint.topic_types import topic_attributes
from rmqtools.policy.route_update import DEFAULT_TOPIC
from rmqtools.policy.validate import check_name
from rmqtools.protocol.headers.codec import RequestHeader
from rmqtools.protocol.headers.topic import (
    CreateTopicRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    DeleteTopicRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
)
from rmqtools.protocol.wire.bodies import parse_topic_config, parse_topic_stats
from rmqtools.protocol.wire.command import RemotingCommand, request

_NO_ATTRIBUTES: Mapping[str, str | None] = {}
_LOOK_PAUSE = 0.02  # seconds between checks for an expected change


class TopicAdmin(AdminPart):
    """The methods about topics; :class:`rmqtools.aio.Admin` has them all."""

    async def fetch_topic_list(self) -> list[str]:
        """Return the names of all topics, sorted; system topics included.

        With a ``namespace`` in the settings: only the topics of that namespace, without its prefix, as every
        other method takes them.
        """
        return sorted(self._ours(await self._client.name_server.fetch_topic_list()))

    async def fetch_route(self, topic: str) -> TopicRouteData:
        """Return a topic's route: its brokers and how many queues each of them has.

        Raises:
            TopicNotFoundError: no name server has a route of it.
        """
        return await self._client.name_server.fetch_route(self._client.wire_topic(topic))

    async def create_topic(
        self,
        topic: str,
        *,
        read_queue_nums: int = 8,
        write_queue_nums: int = 8,
        perm: Perm = Perm.READ | Perm.WRITE,
        cluster_name: str | None = None,
        broker_names: Sequence[str] | None = None,
        message_type: TopicMessageType | TopicTypeName | None = None,
        attributes: Mapping[str, str | None] = _NO_ATTRIBUTES,
    ) -> None:
        """Create a topic, or change one that exists, and wait until the route shows it.

        Args:
            topic: its name.
            read_queue_nums: queues per broker that clients read.
            write_queue_nums: queues per broker that clients send to.
            perm: the operations that clients may use.
            cluster_name: only on the masters of this cluster; None: of all clusters.
            broker_names: only on these brokers; None: on all.
            message_type: which messages a 5.x proxy lets into the topic; None: as it was, NORMAL for a
                new one. Brokers reached directly take all messages.
            attributes: more attributes of a 5.x topic by name, e.g. ``{"cleanup.policy": "COMPACTION"}``;
                None as a value removes one. Brokers refuse names they do not know.

        Raises:
            MessageRejectedError: the name is not valid; nothing was sent.
            ConfigError: no such type, or a text that attributes cannot hold; nothing was sent.
            RemotingTimeoutError: created, but not in the route after ``request_timeout``.
        """
        check_name("topic", topic, MAX_TOPIC_LENGTH)
        changes = topic_attributes(message_type, attributes)
        wire = self._client.wire_topic(topic)
        header = topic_header(wire, read_queue_nums, write_queue_nums, perm, attributes=changes)
        masters = await self._masters.addrs_to_change(cluster_name, broker_names or ())
        if changes is not None:
            for name, addr in masters.items():
                await self._client.versions.check(TOPIC_ATTRIBUTES, broker_name=name, addr=addr)
        for addr in masters.values():
            await self._client.remoting.invoke_ok(addr, request(header))
        await self._await_route(topic, masters, header)

    async def delete_topic(self, topic: str, *, cluster_name: str | None = None) -> None:
        """Delete a topic with all its messages, on brokers and name servers. No error if it is absent.

        Raises:
            RocketMQError: no name server knows the cluster, or any master: nothing was deleted.
            RemotingError: a broker or name server does not answer. The topic may be deleted on some: call it
                again.
        """
        topic = self._client.wire_topic(topic)
        for addr in (await self._masters.addrs_to_change(cluster_name)).values():
            await self._delete_on_broker(addr, topic)
        await self._client.name_server.change_each(DeleteTopicFromNamesrvRequestHeader(topic=topic))

    async def fetch_topic_configs(self, topic: str) -> dict[str, TopicConfig]:
        """Return a topic's settings by broker name: queues, permission, message type and other attributes.

        Raises:
            TopicNotFoundError: no name server has a route of it, or no broker has the topic.
        """
        answers = await self._ask_topic(topic, GetTopicConfigRequestHeader(topic=self._wire(topic)))
        return {name: parse_topic_config(answer.body) for name, answer in answers.items()}

    async def fetch_topic_stats(self, topic: str) -> TopicStatsTable:
        """Return first and last offset of each queue of a topic, and the time of its last message.

        Queues of brokers without a master are missing. ``topic_put_tps`` is the rate of all brokers together.

        Raises:
            TopicNotFoundError: no name server has a route of it, or no broker has the topic.
        """
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

    async def _ask_topic(self, topic: str, header: RequestHeader) -> dict[str, RemotingCommand]:
        """Ask the brokers of a topic's route; those that do not have the topic are left out."""
        route = await self.fetch_route(topic)
        brokers = brokers_of(route)
        answers = await self._masters.invoke_each(
            header, nothing=ResponseCode.TOPIC_NOT_EXIST, brokers=brokers
        )
        if brokers and not answers:
            raise TopicNotFoundError(
                f"topic {topic!r} is in the route, but no broker has it: create it again"
            )
        return answers

    async def _delete_on_broker(self, addr: str, topic: str) -> None:
        """Delete a topic on one broker.

        A broker 5.5.0 without timer wheel deletes the topic and then answers with an internal error (a
        NullPointerException in getTimerMetrics). So that answer is checked against the broker's topics.
        """
        try:
            await self._client.remoting.invoke_ok(addr, request(DeleteTopicRequestHeader(topic=topic)))
        except BrokerError as error:
            if error.code != ResponseCode.SYSTEM_ERROR or await self._has_topic(addr, topic):
                raise

    async def _has_topic(self, addr: str, topic: str) -> bool:
        question = request(GetTopicStatsInfoRequestHeader(topic=topic))
        answer = await self._client.remoting.invoke(addr, question)
        return answer.code != ResponseCode.TOPIC_NOT_EXIST

    async def _await_route(
        self, topic: str, masters: dict[str, str], header: CreateTopicRequestHeader
    ) -> None:
        """Wait until a name server shows the change: brokers answer before they register it."""
        deadline = self._client.clock.monotonic() + self._client.config.request_timeout
        wanted = (header.read_queue_nums, header.write_queue_nums, header.perm)
        while not await self._route_shows(topic, masters, wanted):
            if self._client.clock.monotonic() > deadline:
                raise RemotingTimeoutError(
                    f"topic {topic!r} was created on {', '.join(masters)}, but the route does not "
                    f"show it after {self._client.config.request_timeout} s"
                )
            await asyncio.sleep(_LOOK_PAUSE)
        await self._client.routes.refresh(topic)

    async def _route_shows(self, topic: str, masters: dict[str, str], wanted: tuple[int, int, int]) -> bool:
        try:
            route = await self.fetch_route(topic)
        except TopicNotFoundError:
            return False
        shown = {
            data.broker_name: (data.read_queue_nums, data.write_queue_nums, data.perm)
            for data in route.queue_datas
        }
        return all(shown.get(name) == wanted for name in masters)


def topic_header(
    wire_topic: str, read_queue_nums: int, write_queue_nums: int, perm: Perm, *, attributes: str | None = None
) -> CreateTopicRequestHeader:
    """Return the request that creates or changes a topic on one broker."""
    return CreateTopicRequestHeader(
        topic=wire_topic,
        default_topic=DEFAULT_TOPIC,
        read_queue_nums=read_queue_nums,
        write_queue_nums=write_queue_nums,
        perm=int(perm),
        topic_filter_type="SINGLE_TAG",
        topic_sys_flag=0,
        order=False,
        attributes=attributes,
    )
