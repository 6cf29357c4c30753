"""Loopback ports: finds free ones, or checks a given one."""

import random
import socket
from collections.abc import Iterable

from rmqtools.cluster.errors import ClusterError

LOOPBACK = "127.0.0.1"
_RANGE = range(12_000, 32_000)  # below the ports that systems give to outgoing connections
_BROKER_OFFSETS = (0, -2, 1)  # listenPort; the "fast" port of system requests; HA, on every address
_TRIES = 1000
_LAST_PORT = 65_535


class PortPicker:
    """Picks free ports, each only once."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._random = random.Random()

    def name_server_port(self, asked: int | None) -> int:
        """Return ``asked`` if it is free, or any free port if it is None.

        Raises:
            ClusterError: ``asked`` is in use, was picked for another server, or is no port.
        """
        if asked is None:
            return self._pick((0,))
        if not self._is_free(asked):
            raise ClusterError(
                f"port {asked} for the name server is taken by another process or server, or is no port: "
                "stop that process, give another port, or none to have a free one chosen"
            )
        self._taken.add(asked)
        return asked

    def broker_port(self, asked: int | None = None) -> int:
        """Return a listenPort whose fast port (2 less) and HA port (1 more) are free as well.

        Raises:
            ClusterError: one of the three of ``asked`` is in use, or was picked for another server.
        """
        if asked is None:
            return self._pick(_BROKER_OFFSETS)
        for offset in _BROKER_OFFSETS:
            port = asked + offset
            if not self._is_free(port):
                raise ClusterError(
                    f"port {asked} for a broker: it takes {asked - 2}, {asked} and {asked + 1}, and {port} "
                    "is taken or no port: give another one"
                )
        self._taken |= {asked + offset for offset in _BROKER_OFFSETS}
        return asked

    def proxy_ports(self) -> tuple[int, int]:
        """Return a proxy's ports: for remoting clients, for gRPC clients."""
        return self._pick((0,)), self._pick((0,))

    def _pick(self, offsets: Iterable[int]) -> int:
        for _ in range(_TRIES):
            port = self._random.choice(_RANGE)
            ports = {port + offset for offset in offsets}
            if all(map(self._is_free, ports)):
                self._taken |= ports
                return port
        raise ClusterError(
            f"no free port among {_RANGE.start} to {_RANGE.stop - 1} after {_TRIES} tries: end other servers"
        )

    def _is_free(self, port: int) -> bool:
        return 1 <= port <= _LAST_PORT and port not in self._taken and _can_bind(port)


def _can_bind(port: int) -> bool:
    """Bind as the servers do: on every address, ignoring connections in TIME_WAIT."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
