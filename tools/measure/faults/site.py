"""Servers of a case: they can be killed, started, paused; in Docker or started from the jars."""

import os
import shutil
import signal
from collections.abc import Mapping
from typing import Protocol

from rmqtools.cluster import LocalCluster
from tests.support.cluster_scene import pid_of

NAME_SERVER = "namesrv"


class Site(Protocol):
    """One name server and masters. Services are ``namesrv`` and the broker names. Every call blocks.

    :class:`tests.support.docker_cluster.DockerCluster` is one, too.
    """

    name_server: str

    @property
    def broker_addrs(self) -> Mapping[str, str]:
        """Addresses of the masters by broker name."""

    def kill(self, service: str) -> None:
        """End the server as a power cut of its process would (SIGKILL); its data stay."""

    def start(self, service: str, *, wait: bool = True) -> None:
        """Start a killed server on the data it had; ``wait`` until it answers and is registered."""

    def pause(self, service: str) -> None:
        """Freeze the server: its connections stay open, nobody answers."""

    def unpause(self, service: str, *, wait: bool = True) -> None:
        """Let a paused server go on."""

    def renew(self, service: str) -> None:
        """Kill a broker, delete what it has stored, start it."""

    def restore(self) -> None:
        """Undo whatever faults are left."""


class LocalSite:
    """A local cluster of this process, as a site."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._away: dict[str, str] = {}
        self.name_server = cluster.name_server
        self.broker_addrs = cluster.broker_addrs

    def kill(self, service: str) -> None:
        """See :class:`Site`."""
        self._away[service] = "killed"
        self._cluster.kill_server(service)

    def start(self, service: str, *, wait: bool = True) -> None:
        """See :class:`Site`."""
        self._cluster.start_server(service, wait=wait)
        if wait:
            del self._away[service]
        else:
            self._away[service] = "starting"

    def pause(self, service: str) -> None:
        """See :class:`Site`."""
        self._away[service] = "paused"
        os.kill(pid_of(self._cluster, service), signal.SIGSTOP)

    def unpause(self, service: str, *, wait: bool = True) -> None:
        """See :class:`Site`."""
        os.kill(pid_of(self._cluster, service), signal.SIGCONT)
        self._away.pop(service)

    def renew(self, service: str) -> None:
        """See :class:`Site`."""
        self.kill(service)
        shutil.rmtree(next(one for one in self._cluster.servers if one.name == service).home / "store")
        self.start(service)

    def restore(self) -> None:
        """See :class:`Site`."""
        for service, how in list(self._away.items()):
            if how == "paused":
                self.unpause(service)
            elif how == "killed":
                self.start(service)
            else:
                self._cluster.await_server(service)
                del self._away[service]
