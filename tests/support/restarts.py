"""Killing servers of a local cluster, and starting them again on the files and ports they had."""

import shutil

from rmqtools.cluster import LocalCluster
from rmqtools.cluster.state import load_state


def kill(cluster: LocalCluster, name: str) -> None:
    """End one server as a power cut would."""
    cluster.kill_server(name)


def pid_of(cluster: LocalCluster, name: str) -> int:
    """The process of a server."""
    state = load_state(cluster.directory)
    assert state is not None
    return next(server.pid for server in state.servers if server.name == name)


def start(cluster: LocalCluster, name: str, *, wait: bool = True) -> None:
    """Start a server that was killed; ``wait`` until it answers."""
    cluster.start_server(name, wait=wait)


def await_ready(cluster: LocalCluster, name: str) -> None:
    """Wait until a server answers. A broker is registered then; with a name server, all brokers are."""
    cluster.await_server(name)


def empty(cluster: LocalCluster, name: str) -> None:
    """Delete what a killed broker has stored."""
    shutil.rmtree(next(one for one in cluster.servers if one.name == name).home / "store")
