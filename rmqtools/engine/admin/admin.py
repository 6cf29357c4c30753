"""Administration of topics, routes, clusters and offsets."""

import asyncio
from collections.abc import Mapping, Sequence

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.engine.connection.retrying import look_up
from rmqtools.errors import BrokerError, RemotingTimeoutError, RocketMQError, TopicNotFoundError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import ClusterInfo, Perm, TopicRouteData
from rmqtools.model.topic_type import TopicMessageType
from rmqtools.policy.endpoint.features import TOPIC_ATTRIBUTES
from rmqtools.policy.endpoint.topic_types import topic_attributes
from rmqtools.policy.route_update import DEFAULT_TOPIC
from rmqtools.policy.validate import MAX_TOPIC_LENGTH, check_name
from rmqtools.protocol.headers import (
    CreateTopicRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    DeleteTopicRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    GetTopicStatsInfoRequestHeader,
    OffsetResponseHeader,
    SearchOffsetRequestHeader,
    decode_header,
)
from rmqtools.protocol.headers.codec import RequestHeader
from rmqtools.protocol.wire.bodies import parse_kv_table
from rmqtools.protocol.wire.command import RemotingCommand, request

_NO_ATTRIBUTES: Mapping[str, str | None] = {}
_LOOK_PAUSE = 0.02  # seconds between checks for an expected change


class AdminCore:
    """The coroutines behind :class:`rmqtools.aio.Admin`, which documents them."""

    def __init__(self, client: ClientCore) -> None:
        self._client = client

    async def fetch_cluster_info(self) -> ClusterInfo:
        """See :meth:`rmqtools.aio.Admin.fetch_cluster_info`."""
        return await self._client.name_server.fetch_cluster_info()

    async def fetch_topic_list(self) -> list[str]:
        """See :meth:`rmqtools.aio.Admin.fetch_topic_list`."""
        return sorted(await self._client.name_server.fetch_topic_list())

    async def fetch_route(self, topic: str) -> TopicRouteData:
        """See :meth:`rmqtools.aio.Admin.fetch_route`."""
        return await self._client.name_server.fetch_route(self._client.wire_topic(topic))

    async def fetch_broker_runtime_info(self, broker_addr: str) -> dict[str, str]:
        """See :meth:`rmqtools.aio.Admin.fetch_broker_runtime_info`."""
        command = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
        answer = await self._client.remoting.invoke_ok(broker_addr, command)
        return await parse_aside(parse_kv_table, answer.body)

    async def update_broker_config(self, broker_addr: str, settings: dict[str, str]) -> None:
        """See :meth:`rmqtools.aio.Admin.update_broker_config`."""
        body = "".join(f"{name}={value}\n" for name, value in settings.items()).encode()
        await self._client.remoting.invoke_ok(
            broker_addr, RemotingCommand(RequestCode.UPDATE_BROKER_CONFIG, body=body)
        )

    async def create_topic(
        self,
        topic: str,
        *,
        read_queue_nums: int,
        write_queue_nums: int,
        perm: int = Perm.READ | Perm.WRITE,
        cluster_name: str | None = None,
        broker_names: Sequence[str] | None = None,
        message_type: TopicMessageType | str | None = None,
        attributes: Mapping[str, str | None] = _NO_ATTRIBUTES,
    ) -> None:
        """See :meth:`rmqtools.aio.Admin.create_topic`."""
        check_name("topic", topic, MAX_TOPIC_LENGTH)
        changes = topic_attributes(message_type, attributes)
        header = CreateTopicRequestHeader(
            topic=self._client.wire_topic(topic),
            default_topic=DEFAULT_TOPIC,
            read_queue_nums=read_queue_nums,
            write_queue_nums=write_queue_nums,
            perm=int(perm),
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
            order=False,
            attributes=changes,
        )
        masters = _choose(await self.fetch_masters(cluster_name), broker_names)
        if changes is not None:
            for name, addr in masters.items():
                await self._client.versions.check(TOPIC_ATTRIBUTES, broker_name=name, addr=addr)
        for addr in masters.values():
            await self._client.remoting.invoke_ok(addr, request(header))
        await self._await_route(topic, masters, header)

    async def delete_topic(self, topic: str, *, cluster_name: str | None = None) -> None:
        """See :meth:`rmqtools.aio.Admin.delete_topic`."""
        topic = self._client.wire_topic(topic)
        for addr in (await self.fetch_masters(cluster_name)).values():
            await self._delete_on_broker(addr, topic)
        for addr in self._client.name_server.addrs:
            await self._client.remoting.invoke_ok(
                addr, request(DeleteTopicFromNamesrvRequestHeader(topic=topic))
            )

    async def fetch_subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.Admin.fetch_subscribe_queues`."""
        await self._client.routes.refresh(topic)
        return await self._client.routes.subscribe_queues(topic)

    async def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.Admin.fetch_publish_queues`."""
        await self._client.routes.refresh(topic)
        return list((await self._client.routes.publish_info(topic)).queues)

    async def min_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.Admin.min_offset`."""
        return await self._offset(
            queue,
            GetMinOffsetRequestHeader(
                topic=self._client.wire_topic(queue.topic), queue_id=queue.queue_id, bname=queue.broker_name
            ),
        )

    async def max_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.Admin.max_offset`."""
        return await self._offset(
            queue,
            GetMaxOffsetRequestHeader(
                topic=self._client.wire_topic(queue.topic), queue_id=queue.queue_id, bname=queue.broker_name
            ),
        )

    async def await_readable(self, max_offsets: Mapping[MessageQueue, int], *, timeout: float) -> None:
        """See :meth:`rmqtools.aio.Admin.await_readable`."""
        deadline = self._client.clock.monotonic() + timeout
        for queue, wanted in max_offsets.items():
            while (shown := await self.max_offset(queue)) < wanted:
                if self._client.clock.monotonic() > deadline:
                    raise RemotingTimeoutError(
                        f"{queue} shows offsets up to {shown} after {timeout} s, not up to {wanted}"
                    )
                await asyncio.sleep(_LOOK_PAUSE)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """See :meth:`rmqtools.aio.Admin.search_offset`."""
        header = SearchOffsetRequestHeader(
            topic=self._client.wire_topic(queue.topic),
            queue_id=queue.queue_id,
            timestamp=timestamp_ms,
            bname=queue.broker_name,
        )
        return await self._offset(queue, header)

    async def fetch_masters(self, cluster_name: str | None = None) -> dict[str, str]:
        """Master addresses by broker name, of one cluster or of all."""
        info = await self.fetch_cluster_info()
        if cluster_name is not None and cluster_name not in info.cluster_addr_table:
            known = ", ".join(sorted(info.cluster_addr_table)) or "none"
            raise RocketMQError(f"cluster {cluster_name!r} is not known to the name server (known: {known})")
        names = info.broker_addr_table if cluster_name is None else info.cluster_addr_table[cluster_name]
        addrs = {name: info.broker_addr_table[name].broker_addrs for name in names}
        return {name: by_id[0] for name, by_id in sorted(addrs.items()) if 0 in by_id}

    async def ask_master(self, queue: MessageQueue, command: RemotingCommand) -> RemotingCommand:
        """Ask a queue's master, since a slave may lag behind. Repeats the request while no answer comes."""
        routes = self._client.routes
        if queue.topic not in routes.tables.routes:
            await routes.refresh(queue.topic)

        async def ask() -> RemotingCommand:
            addr = routes.master_addr(routes.broker_name(queue))
            return await self._client.remoting.invoke_ok(addr, command)

        return await look_up(ask, timeout=self._client.config.request_timeout)

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

    async def _offset(self, queue: MessageQueue, header: RequestHeader) -> int:
        answer = await self.ask_master(queue, request(header))
        return decode_header(OffsetResponseHeader, answer.ext_fields).offset

    async def _await_route(
        self, topic: str, masters: dict[str, str], header: CreateTopicRequestHeader
    ) -> None:
        """Wait until every name server shows the change: brokers answer before they register it."""
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


def _choose(masters: dict[str, str], broker_names: Sequence[str] | None) -> dict[str, str]:
    chosen = {name: masters[name] for name in broker_names or masters if name in masters}
    if missing := set(broker_names or ()) - set(masters):
        raise RocketMQError(
            f"brokers {sorted(missing)} have no master in the route (known: {sorted(masters)})"
        )
    if not chosen:
        raise RocketMQError(
            "the name server knows no master: start a broker, or wait until it has registered"
        )
    return chosen
