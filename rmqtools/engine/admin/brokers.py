"""Administration of brokers: the list of them, their statistics and settings."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from rmqtools.engine.admin.broker_requests import (
    fetch_read_only,
    fetch_runtime_info,
    fetch_settings,
    update_settings,
)
from rmqtools.engine.admin.masters import AdminPart
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.errors import RemotingTimeoutError, RocketMQError
from rmqtools.model.broker_view import BrokerState, NameServerState
from rmqtools.model.codes import RequestCode
from rmqtools.model.route import MASTER_ID, ClusterInfo
from rmqtools.policy.clocks import broker_ahead
from rmqtools.protocol.wire.bodies import parse_cluster_info
from rmqtools.protocol.wire.command import RemotingCommand


class BrokerAdmin(AdminPart):
    """The methods about brokers; :class:`rmqtools.aio.Admin` has them all."""

    async def fetch_cluster_info(self) -> ClusterInfo:
        """Return all brokers that the name server knows, by name and by cluster."""
        return await self._client.name_server.fetch_cluster_info()

    async def fetch_clocks(self) -> dict[str, float]:
        """Return how many seconds the clock of each broker is ahead of this machine's, by broker name.

        Estimated from answers, to about a second, at most once a minute. Negative: it is behind; 0.0: the
        clocks may be equal. Brokers whose answers have no time are left out.
        """
        return await self._masters.clocks()

    async def fetch_broker_runtime_info(self, broker_addr: str) -> dict[str, str]:
        """Return a broker's statistics by name, as text (GET_BROKER_RUNTIME_INFO)."""
        return await fetch_runtime_info(self._client, broker_addr)

    async def fetch_broker_config(self, broker_addr: str) -> dict[str, str]:
        """Return the settings of a running broker by name, as text (GET_BROKER_CONFIG)."""
        return await fetch_settings(self._client, broker_addr)

    async def update_broker_config(self, broker_addr: str, settings: Mapping[str, str]) -> None:
        """Change settings of a running broker. Not all take effect before its next start."""
        await update_settings(self._client, broker_addr, settings)

    async def fetch_read_only_brokers(self) -> list[str]:
        """Return the brokers that routes show as not writable, sorted.

        Either :meth:`forbid_writing` was called, or ``brokerPermission`` of the broker lacks the write bit.
        """
        return await fetch_read_only(self._client)

    async def fetch_brokers(self, *, timeout: float = 10.0) -> list[BrokerState]:
        """Ask every server of every broker for its statistics; one that gives none has its error.

        Args:
            timeout: seconds for all of it; a server that has not answered by then has an error.

        Returns:
            A state for each master and each slave, by broker name and broker id.

        Raises:
            RemotingError: no name server answers.
        """
        until = asyncio.timeout(timeout)
        try:
            async with until:
                places = await self._places()
        except TimeoutError as error:
            if not until.expired():
                raise
            raise RemotingTimeoutError(f"no name server answered within {timeout:g} s") from error
        left = max(0.0, (until.when() or 0.0) - asyncio.get_running_loop().time())
        asking = [asyncio.ensure_future(self._state(place)) for place in places]
        try:
            _, silent = await asyncio.wait(asking, timeout=left) if asking else ((), set())
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        late = f"no answer within {timeout:g} s"
        return [
            replace(place, error=late) if task in silent else task.result()
            for place, task in zip(places, asking, strict=True)
        ]

    async def fetch_name_servers(self, *, timeout: float = 10.0) -> list[NameServerState]:
        """Ask every name server of the settings for its brokers; one that does not answer has its error.

        Args:
            timeout: seconds for all of it.

        Returns:
            A state for each, in the order of the settings.
        """
        addrs = await self._client.name_server.addrs()
        return await asyncio.gather(*(self._name_server(addr, timeout) for addr in addrs))

    async def _name_server(self, addr: str, timeout: float) -> NameServerState:
        command = RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO)
        try:
            answer = await self._client.remoting.invoke(addr, command, timeout=timeout)
            self._client.remoting.checked(answer, command.code, addr)
            info = await parse_aside(parse_cluster_info, answer.body)
        except RocketMQError as error:
            return NameServerState(addr=addr, error=str(error))
        return NameServerState(addr=addr, brokers=frozenset(info.broker_addr_table))

    async def _places(self) -> list[BrokerState]:
        """Return every server of every broker, as name servers know it."""
        read_only = await fetch_read_only(self._client)
        info = await self._client.name_server.fetch_cluster_info()
        return [
            BrokerState(
                broker_name=data.broker_name,
                cluster=data.cluster,
                broker_id=broker_id,
                addr=addr,
                is_read_only=data.broker_name in read_only,
                is_alone=broker_id == min(data.broker_addrs) != MASTER_ID,
            )
            for data in sorted(info.broker_addr_table.values(), key=lambda data: data.broker_name)
            for broker_id, addr in sorted(data.broker_addrs.items())
        ]

    async def _state(self, place: BrokerState) -> BrokerState:
        asked_ms = self._client.clock.now_ms()
        try:
            statistics = await fetch_runtime_info(self._client, place.addr)
        except RocketMQError as error:
            return replace(place, error=str(error))
        clock = broker_ahead(statistics, asked_ms, self._client.clock.now_ms())
        return replace(place, statistics=statistics, clock=clock)
