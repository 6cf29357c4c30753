"""Requests of administration go to masters: a slave may lag behind."""

import asyncio
from collections.abc import Iterable

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.retrying import look_up
from rmqtools.errors import BrokerError, RocketMQError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.names import namespace_of, without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.headers.codec import RequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, request


class Masters:
    """The masters that the name server knows."""

    def __init__(self, client: ClientCore) -> None:
        self._client = client

    async def addrs(self, cluster_name: str | None = None) -> dict[str, str]:
        """Return the addresses of masters by broker name, of one cluster or of all."""
        info = await self._client.name_server.fetch_cluster_info()
        if cluster_name is not None and cluster_name not in info.cluster_addr_table:
            known = ", ".join(sorted(info.cluster_addr_table)) or "none"
            raise RocketMQError(f"cluster {cluster_name!r} is not known to the name server (known: {known})")
        names = info.broker_addr_table if cluster_name is None else info.cluster_addr_table[cluster_name]
        addrs = {name: info.broker_addr_table[name].broker_addrs for name in names}
        return {name: by_id[0] for name, by_id in sorted(addrs.items()) if 0 in by_id}

    async def addr_for(self, queue: MessageQueue) -> str:
        """Return the address of a queue's master.

        Raises:
            TopicNotFoundError: the queue's topic has no route.
        """
        routes = self._client.routes
        if queue.topic not in routes.tables.routes:
            await routes.refresh(queue.topic)
        return routes.master_addr(routes.broker_name(queue))

    async def invoke_for(self, queue: MessageQueue, command: RemotingCommand) -> RemotingCommand:
        """Send a request to a queue's master; repeat it while no answer comes."""
        routes = self._client.routes
        if queue.topic not in routes.tables.routes:
            await routes.refresh(queue.topic)

        async def invoke() -> RemotingCommand:
            addr = routes.master_addr(routes.broker_name(queue))
            return await self._client.remoting.invoke_ok(addr, command)

        return await look_up(invoke, timeout=self._client.config.request_timeout)

    async def invoke_all(
        self, header: RequestHeader, body: bytes = b"", *, nothing: ResponseCode | None = None
    ) -> list[RemotingCommand]:
        """Send a request to all masters at once; leave out those that answer ``nothing``.

        Raises:
            RocketMQError: the first error, because a result that lacks a broker would be wrong.
        """
        return list((await self.invoke_each(header, body, nothing=nothing)).values())

    async def invoke_each(
        self, header: RequestHeader, body: bytes = b"", *, nothing: ResponseCode | None = None
    ) -> dict[str, RemotingCommand]:
        """As :meth:`invoke_all`; the answers by broker name."""
        masters = await self.addrs()
        invoke = self._client.remoting.invoke
        answers = await asyncio.gather(*(invoke(addr, request(header, body)) for addr in masters.values()))
        by_name = dict(zip(masters, answers, strict=True))
        for name, answer in by_name.items():
            addr = masters[name]
            if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise self._client.endpoint.not_served(header.code, answer.remark, addr)
            if answer.code not in (ResponseCode.SUCCESS, nothing):
                raise BrokerError(answer.code, answer.remark, addr)
        return {name: answer for name, answer in by_name.items() if answer.code == ResponseCode.SUCCESS}


class AdminPart:
    """The common part of all administration: a client, and its masters."""

    def __init__(self, client: ClientCore) -> None:
        self._client = client
        self._masters = Masters(client)

    def _wire(self, name: str) -> str:
        return self._client.wire_topic(name)

    def _bare(self, name: str) -> str:
        return without_this_namespace(name, self._client.config.namespace)

    def _ours(self, names: Iterable[str]) -> set[str]:
        """Without the namespace of the settings; names of other namespaces are left out."""
        namespace = self._client.config.namespace
        if not namespace:
            return set(names)
        return {self._bare(name) for name in names if namespace_of(name) == namespace}

    def _bare_queue(self, queue: MessageQueue) -> MessageQueue:
        return queue.without_namespace(self._client.config.namespace)
