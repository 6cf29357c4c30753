"""Administration of brokers: the list of them, their statistics and settings."""

from collections.abc import Mapping

from rmqtools.engine.admin.broker_requests import fetch_runtime_info, fetch_settings, update_settings
from rmqtools.engine.admin.masters import AdminPart
from rmqtools.model.route import ClusterInfo


class BrokerAdmin(AdminPart):
    """The methods about brokers; :class:`rmqtools.aio.Admin` has them all."""

    async def fetch_cluster_info(self) -> ClusterInfo:
        """Return all brokers that the name server knows, by name and by cluster."""
        return await self._client.name_server.fetch_cluster_info()

    async def fetch_broker_runtime_info(self, broker_addr: str) -> dict[str, str]:
        """Return a broker's statistics by name, as text (GET_BROKER_RUNTIME_INFO)."""
        return await fetch_runtime_info(self._client, broker_addr)

    async def fetch_broker_config(self, broker_addr: str) -> dict[str, str]:
        """Return the settings of a running broker by name, as text (GET_BROKER_CONFIG)."""
        return await fetch_settings(self._client, broker_addr)

    async def update_broker_config(self, broker_addr: str, settings: Mapping[str, str]) -> None:
        """Change settings of a running broker. Not all take effect before its next start."""
        await update_settings(self._client, broker_addr, settings)
