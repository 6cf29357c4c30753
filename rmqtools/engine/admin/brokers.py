"""Administration of brokers: the list of them, their statistics and settings."""

from collections.abc import Mapping

from rmqtools.engine.admin.masters import AdminPart
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.model.codes import RequestCode
from rmqtools.model.route import ClusterInfo
from rmqtools.protocol.wire.bodies import parse_kv_table, parse_properties_text
from rmqtools.protocol.wire.command import RemotingCommand


class BrokerAdmin(AdminPart):
    """The methods about brokers; :class:`rmqtools.aio.Admin` has them all."""

    async def fetch_cluster_info(self) -> ClusterInfo:
        """Return all brokers that the name server knows, by name and by cluster."""
        return await self._client.name_server.fetch_cluster_info()

    async def fetch_broker_runtime_info(self, broker_addr: str) -> dict[str, str]:
        """Return a broker's statistics by name, as text (GET_BROKER_RUNTIME_INFO)."""
        command = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
        answer = await self._client.remoting.invoke_ok(broker_addr, command)
        return await parse_aside(parse_kv_table, answer.body)

    async def fetch_broker_config(self, broker_addr: str) -> dict[str, str]:
        """Return the settings of a running broker by name, as text (GET_BROKER_CONFIG)."""
        command = RemotingCommand(RequestCode.GET_BROKER_CONFIG)
        return parse_properties_text((await self._client.remoting.invoke_ok(broker_addr, command)).body)

    async def update_broker_config(self, broker_addr: str, settings: Mapping[str, str]) -> None:
        """Change settings of a running broker. Not all take effect before its next start."""
        body = "".join(f"{name}={value}\n" for name, value in settings.items()).encode()
        await self._client.remoting.invoke_ok(
            broker_addr, RemotingCommand(RequestCode.UPDATE_BROKER_CONFIG, body=body)
        )
