"""What a checkout's Docker cluster is called and where it listens: a pure function of the checkout's path.

Two checkouts on one machine do not meet: each has a compose project, four loopback addresses and a block of
16 ports of its own.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

NAME_SERVER = "namesrv"
BROKERS = ("broker-a", "broker-b", "broker-c")
SERVICES = (NAME_SERVER, *BROKERS)

_FIRST_PORT, _PORT_BLOCKS, _BLOCK = 10_000, 1_250, 16  # below the ports that Linux gives to clients


@dataclass(frozen=True)
class ClusterLayout:
    """What one checkout calls its own on this machine."""

    project: str
    hosts: dict[str, str]
    ports: dict[str, int]

    @classmethod
    def of(cls, checkout: Path) -> Self:
        """Derive the values from the path's hash.

        A broker with listenPort p also binds p - 2 (fast remoting) and p + 1 (HA, on every address: this one
        is why the ports differ between checkouts, and not the addresses alone).
        """
        digest = hashlib.sha256(str(checkout.resolve()).encode()).digest()
        net = f"127.{64 + digest[0] % 128}.{digest[1]}"
        first = _FIRST_PORT + _BLOCK * (int.from_bytes(digest[2:4], "big") % _PORT_BLOCKS)
        return cls(
            project=f"rmqtools-{digest.hex()[:8]}",
            hosts={service: f"{net}.{i + 1}" for i, service in enumerate(SERVICES)},
            ports={service: first + 4 * i for i, service in enumerate(SERVICES)},
        )

    def address(self, service: str) -> str:
        """``host:port`` of a service."""
        return f"{self.hosts[service]}:{self.ports[service]}"

    def container(self, service: str) -> str:
        """The container's name; docker/compose.yml builds the same."""
        return f"{self.project}-{service}"

    def sockets(self) -> Iterator[tuple[str, int]]:
        """Every address that the cluster binds."""
        yield self.hosts[NAME_SERVER], self.ports[NAME_SERVER]
        for broker in BROKERS:
            host, port = self.hosts[broker], self.ports[broker]
            yield from ((host, port), (host, port - 2), ("0.0.0.0", port + 1))
