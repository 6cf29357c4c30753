"""Requests of administration go to masters: a slave may lag behind."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.retrying import look_up
from rmqtools.errors import RemotingError, RocketMQError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.names import namespace_of, without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.headers.codec import RequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, request

T = TypeVar("T")


class Masters:
    """The masters that the name server knows.

    With ``partial``, requests that only read leave out masters that do not answer. Each of them costs the
    time of one request: ``missing`` has its error, and it gets no further request.
    """

    def __init__(self, client: ClientCore, *, partial: bool = False) -> None:
        self._client = client
        self._partial = partial
        self.missing: dict[str, RemotingError] = {}

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

    async def each(
        self, call: Callable[[str], Awaitable[T]], masters: Mapping[str, str] | None = None
    ) -> dict[str, T]:
        """Await ``call(addr)`` of all masters at the same time, and return the results by broker name.

        The only way to ask several masters: see the class for those that do not answer.

        Args:
            call: one or several requests that only read.
            masters: the addresses to ask, by broker name; None: of all masters.

        Raises:
            RocketMQError: the first error. With ``partial``: no master answers.
        """
        masters = await self.addrs() if masters is None else masters
        found: dict[str, T] = {}

        async def ask(name: str, addr: str) -> None:
            if name not in self.missing:
                try:
                    found[name] = await call(addr)
                except RemotingError as error:
                    self._leave_out(name, error)

        await asyncio.gather(*(ask(name, addr) for name, addr in masters.items()))
        if masters and not found:
            raise self.missing[next(iter(masters))]
        return {name: found[name] for name in masters if name in found}

    async def each_queue(
        self, call: Callable[[MessageQueue], Awaitable[T]], queues: Iterable[MessageQueue]
    ) -> dict[MessageQueue, T]:
        """As :meth:`each`, of the masters of queues. Queues of missing masters are left out."""
        found: dict[MessageQueue, T] = {}

        async def ask(queue: MessageQueue) -> None:
            name = self._client.routes.broker_name(queue)
            if name not in self.missing:
                try:
                    found[queue] = await call(queue)
                except RemotingError as error:
                    self._leave_out(name, error)

        asked = list(queues)
        await asyncio.gather(*map(ask, asked))
        return {queue: found[queue] for queue in asked if queue in found}

    def _leave_out(self, broker_name: str, error: RemotingError) -> None:
        if not self._partial:
            raise error
        self.missing.setdefault(broker_name, error)

    async def invoke_for(self, queue: MessageQueue, command: RemotingCommand) -> RemotingCommand:
        """Send a request to a queue's master; repeat it while no answer comes."""
        routes = self._client.routes
        if queue.topic not in routes.tables.routes:
            await routes.refresh(queue.topic)

        async def invoke() -> RemotingCommand:
            addr = routes.master_addr(routes.broker_name(queue))
            return await self._client.remoting.invoke_ok(addr, command)

        return await look_up(invoke, timeout=self._client.config.request_timeout)

    async def change_all(self, header: RequestHeader, body: bytes = b"") -> None:
        """Send a request that changes something to all masters at once.

        Raises:
            RocketMQError: the first error; also with ``partial``, because a change must reach every master.
        """
        masters = await self.addrs()
        invoke = self._client.remoting.invoke_ok
        await asyncio.gather(*(invoke(addr, request(header, body)) for addr in masters.values()))

    async def invoke_each(
        self,
        header: RequestHeader,
        *,
        nothing: ResponseCode | None = None,
        masters: Mapping[str, str] | None = None,
    ) -> dict[str, RemotingCommand]:
        """Send a request that only reads to masters; leave out those that answer ``nothing``.

        Args:
            header: the request.
            nothing: the code of an answer that a master has nothing to say; None: there is no such code.
            masters: as in :meth:`each`.

        Returns:
            The answers by broker name.
        """

        async def invoke(addr: str) -> RemotingCommand:
            answer = await self._client.remoting.invoke(addr, request(header))
            is_empty = nothing is not None and answer.code == nothing
            return answer if is_empty else self._client.remoting.checked(answer, header.code, addr)

        answers = await self.each(invoke, masters)
        return {name: answer for name, answer in answers.items() if answer.code == ResponseCode.SUCCESS}


class AdminPart:
    """The common part of all administration: a client, and its masters."""

    def __init__(self, client: ClientCore, *, partial: bool = False) -> None:
        self._client = client
        self._masters = Masters(client, partial=partial)

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
