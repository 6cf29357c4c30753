"""Several real name servers without brokers, which tests kill, restart and clear."""

from pathlib import Path
from typing import Self

from rmqtools import ClientConfig
from rmqtools.cluster.children import Children
from rmqtools.cluster.jars import ensure_jars
from rmqtools.cluster.java import find_java
from rmqtools.cluster.ports import PortPicker
from rmqtools.cluster.readiness import ReadinessProbe
from rmqtools.cluster.server import Server, name_server

_START_SECONDS = 60.0


class NameServers:
    """``count`` name servers below ``directory``; numbered from 0, all running when the block is entered."""

    def __init__(self, directory: Path, count: int) -> None:
        self._servers = [self._plan(directory / str(number)) for number in range(count)]
        self._running: dict[int, Children] = {}

    @property
    def addrs(self) -> list[str]:
        return [server.address for server in self._servers]

    @property
    def name_server(self) -> str:
        """What a client is configured with."""
        return ";".join(self.addrs)

    def kill(self, number: int) -> None:
        """End one as a power cut would."""
        self._running.pop(number).stop(grace=0)

    def start(self, number: int) -> None:
        """Start one on the files it had; returns when it answers."""
        server = self._servers[number]
        children = self._running[number] = Children(server.directory)
        children.start(server, find_java(), ensure_jars())
        config = ClientConfig(name_server=server.address)
        with ReadinessProbe(
            config, timeout=_START_SECONDS, check=children.refuse_dead, logs=str(server.output)
        ) as probe:
            probe.await_name_server()

    def lose_kv_file(self, number: int) -> None:
        """Remove the file in which one keeps its KV config."""
        (self._servers[number].home / "namesrv" / "kvConfig.json").unlink()

    def __enter__(self) -> Self:
        for number in range(len(self._servers)):
            self.start(number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self._running):
            self.kill(number)

    @staticmethod
    def _plan(directory: Path) -> Server:
        directory.mkdir(parents=True)
        return name_server(directory, PortPicker().name_server_port(None))
