"""The servers that requests of administration go to.

Changes, and questions about one queue, go to masters: a slave may lag behind. Other questions go to a slave
while a broker has no master.

A change that goes to all masters raises if no master is known: otherwise it would succeed and change nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TypeVar

from rmqtools.engine.admin.broker_requests import fetch_runtime_info
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.retrying import look_up
from rmqtools.errors import BrokerError, RemotingError, RocketMQError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.names import namespace_of, without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import BrokerData, ClusterInfo, TopicRouteData
from rmqtools.policy.clocks import broker_ahead
from rmqtools.protocol.headers.codec import RequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, request

T = TypeVar("T")
K = TypeVar("K")
_CLOCKS_LAST = 60.0  # seconds


class Masters:
    """The masters that the name server knows.

    With ``partial``, requests that only read leave out masters that do not answer. Each of them costs the
    time of one request: ``missing`` has its error, and it gets no further request.
    """

    def __init__(self, client: ClientCore, *, partial: bool = False) -> None:
        self._client = client
        self._partial = partial
        self.missing: dict[str, RemotingError] = {}
        self._clocks: dict[str, float] = {}
        self._clocks_until = 0.0
        self._clocks_lock = asyncio.Lock()

    async def addrs(self) -> dict[str, str]:
        """Return the addresses of all masters by broker name; empty if no name server knows a broker."""
        return masters_of(await self._client.name_server.fetch_cluster_info())

    async def readers(self) -> dict[str, str]:
        """Return the addresses that answer questions, by broker name: see :func:`reader`."""
        info = await self._client.name_server.fetch_cluster_info()
        return {name: reader(data) for name, data in sorted(info.broker_addr_table.items())}

    async def addrs_to_change(
        self, cluster_name: str | None = None, broker_names: Collection[str] = ()
    ) -> dict[str, str]:
        """Return the masters that get a change, by broker name: of one cluster, of these brokers, or all.

        Raises:
            RocketMQError: no name server knows the cluster, a master of each broker, or any master.
        """

        def has(info: ClusterInfo) -> bool:
            masters = masters_of(info, cluster_name)
            return bool(masters) and masters.keys() >= set(broker_names)

        info = await self._client.name_server.fetch_cluster_info(has)
        masters = masters_of(info, cluster_name)
        if has(info):
            return {name: masters[name] for name in broker_names or masters}
        known, wanted = sorted(masters), "a master: start a broker, or wait until it has registered"
        if cluster_name is not None and cluster_name not in info.cluster_addr_table:
            known, wanted = sorted(info.cluster_addr_table), f"cluster {cluster_name!r}"
        elif missing := set(broker_names) - masters.keys():
            wanted = f"a master of brokers {sorted(missing)}"
        asked = ", ".join(await self._client.name_server.addrs())
        raise RocketMQError(
            f"no name server knows {wanted} (known: {', '.join(known) or 'none'}; asked: {asked})"
        )

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
        self, call: Callable[[str], Awaitable[T]], brokers: Mapping[str, BrokerData] | None = None
    ) -> dict[str, T]:
        """Await ``call(addr)`` of all brokers at the same time, and return the results by broker name.

        The only way to ask several brokers: see the class for those that do not answer. For a broker
        without a master, the call goes to its first slave.

        Args:
            call: one or several requests that only read.
            brokers: the brokers to ask, by name; None: all.

        Raises:
            RocketMQError: the first error. With ``partial``: no broker answers.
        """
        addrs = (
            await self.readers()
            if brokers is None
            else {name: reader(data) for name, data in brokers.items()}
        )
        found = await self._ask(lambda name: call(addrs[name]), {name: name for name in addrs})
        if addrs and not found:
            raise self.missing[next(iter(addrs))]
        return found

    async def clocks(self) -> dict[str, float]:
        """Return how many seconds the clock of each broker is ahead; asks again after a minute."""
        clock = self._client.clock

        async def ask(addr: str) -> float | None:
            asked_ms = clock.now_ms()
            try:
                statistics = await fetch_runtime_info(self._client, addr)
            except BrokerError:  # a broker that refuses to tell is there all the same
                return None
            return broker_ahead(statistics, asked_ms, clock.now_ms())

        async with self._clocks_lock:
            if clock.monotonic() >= self._clocks_until:
                found = await self.each(ask)
                self._clocks = {name: ahead for name, ahead in found.items() if ahead is not None}
                self._clocks_until = clock.monotonic() + _CLOCKS_LAST
        return self._clocks

    async def each_queue(
        self, call: Callable[[MessageQueue], Awaitable[T]], queues: Iterable[MessageQueue]
    ) -> dict[MessageQueue, T]:
        """As :meth:`each`, of the masters of queues. Queues of missing masters are left out."""
        return await self._ask(call, {queue: self._client.routes.broker_name(queue) for queue in queues})

    async def _ask(self, call: Callable[[K], Awaitable[T]], brokers: Mapping[K, str]) -> dict[K, T]:
        """Await ``call(key)`` of all keys, whose brokers are given; leave out those of missing brokers."""
        found: dict[K, T] = {}

        async def ask(key: K, broker_name: str) -> None:
            if broker_name in self.missing:
                return
            try:
                found[key] = await call(key)
            except RemotingError as error:
                if not self._partial:
                    raise
                self.missing.setdefault(broker_name, error)

        await asyncio.gather(*(ask(key, name) for key, name in brokers.items()))
        return {key: found[key] for key in brokers if key in found}

    async def invoke_for(
        self, queue: MessageQueue, command: RemotingCommand, *, or_slave: bool = False
    ) -> RemotingCommand:
        """Send a request to a queue's master; repeat it while no answer comes.

        ``or_slave``: to a slave while there is no master, as members of groups do with their offsets.
        """
        routes = self._client.routes
        if queue.topic not in routes.tables.routes:
            await routes.refresh(queue.topic)

        async def invoke() -> RemotingCommand:
            name = routes.broker_name(queue)
            addr = routes.admin_addr(name) if or_slave else routes.master_addr(name)
            return await self._client.remoting.invoke_ok(addr, command)

        return await look_up(invoke, timeout=self._client.config.request_timeout)

    async def change_all(self, header: RequestHeader, body: bytes = b"") -> None:
        """Send a request that changes something to all masters at once.

        Raises:
            RocketMQError: the first error; also with ``partial``, because a change must reach every master.
                No name server knows a master.
        """
        masters = await self.addrs_to_change()
        invoke = self._client.remoting.invoke_ok
        await asyncio.gather(*(invoke(addr, request(header, body)) for addr in masters.values()))

    async def invoke_each(
        self,
        header: RequestHeader,
        *,
        nothing: ResponseCode | None = None,
        brokers: Mapping[str, BrokerData] | None = None,
    ) -> dict[str, RemotingCommand]:
        """Send a request that only reads to brokers; leave out those that answer ``nothing``.

        Args:
            header: the request.
            nothing: the code of an answer that a broker has nothing to say; None: there is no such code.
            brokers: as in :meth:`each`.

        Returns:
            The answers by broker name.
        """

        async def invoke(addr: str) -> RemotingCommand:
            answer = await self._client.remoting.invoke(addr, request(header))
            is_empty = nothing is not None and answer.code == nothing
            return answer if is_empty else self._client.remoting.checked(answer, header.code, addr)

        answers = await self.each(invoke, brokers)
        return {name: answer for name, answer in answers.items() if answer.code == ResponseCode.SUCCESS}


def masters_of(info: ClusterInfo, cluster_name: str | None = None) -> dict[str, str]:
    """Return the addresses of masters by broker name, sorted: of one cluster, or of all."""
    names = info.broker_addr_table if cluster_name is None else info.cluster_addr_table.get(cluster_name, ())
    addrs = {name: info.broker_addr_table[name].broker_addrs for name in sorted(names)}
    return {name: by_id[0] for name, by_id in addrs.items() if 0 in by_id}


def reader(data: BrokerData) -> str:
    """Return the address of a broker's master, or of its first slave if it has no master now."""
    return data.broker_addrs[min(data.broker_addrs)]


def brokers_of(route: TopicRouteData) -> dict[str, BrokerData]:
    """Return the brokers of a route that have a server, by name."""
    return {data.broker_name: data for data in route.broker_datas if data.broker_addrs}


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
