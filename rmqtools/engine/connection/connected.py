"""The part that all asynchronous classes share: their connections to a cluster."""

import re
from collections.abc import Mapping

from rmqtools.config.text import parse_addresses
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import ConfigError


class Connected(Asynchronous):
    """An asynchronous class with connections of its own."""

    _client: ClientCore

    def _shown(self) -> Mapping[str, str]:
        config = self._client.config
        group = {"group": config.group} if hasattr(config, "group") else {}
        server = re.sub(r"//[^/]*@", "//", config.name_server)  # a list's address may have a password
        return group | {"name_server": server, "state": self._client.state}

    @property
    def is_connected(self) -> bool:
        """True if the client is started and a broker can be reached: an answer for health probes.

        Sends nothing. The first request to a broker opens a connection. Members of groups, producers too,
        also connect with their heartbeats (every ``heartbeat_broker_interval``, 30 s) to the brokers of all
        topics they know, and connect again after a loss. A broker that answered no heartbeat does not count.
        """
        return self._client.is_connected

    async def update_name_server(self, name_server: str) -> None:
        """Use other name servers from now on; connections to brokers stay.

        Args:
            name_server: ``host:port``, several separated by ``;``.

        Raises:
            ConfigError: none is given, or one is no address.

        Source of the rule: MQClientAPIImpl.updateNameServerAddressList (Java client).
        """
        if not parse_addresses(name_server):
            raise ConfigError(f"name_server={name_server!r}: want host:port;host:port")
        self._client.remoting.name_servers.replace(name_server)
