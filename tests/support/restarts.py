"""Killing servers of a local cluster, and starting them again on the files and ports they had."""

import os
import signal

from rmqtools.cluster import LocalCluster
from rmqtools.cluster.children import Children
from rmqtools.cluster.jars import ensure_jars
from rmqtools.cluster.java import find_java
from rmqtools.cluster.readiness import ReadinessProbe
from rmqtools.cluster.state import load_state


def kill(cluster: LocalCluster, name: str) -> None:
    """End one server as a power cut would; the cluster's own processes only."""
    state = load_state(cluster.directory)
    assert state is not None
    pid = next(server.pid for server in state.servers if server.name == name)
    os.kill(pid, signal.SIGKILL)
    for _, process in _children(cluster)._started:
        if process.pid == pid:
            process.wait(20)


def start(cluster: LocalCluster, name: str) -> None:
    """Start a server that was killed; returns when it answers."""
    server = next(one for one in cluster.servers if one.name == name)
    children = _children(cluster)
    children._started = [(one, process) for one, process in children._started if one.name != name]
    children.start(server, find_java(), ensure_jars())
    children.state(owner=os.getpid(), detached=False).persist(cluster.directory)
    with ReadinessProbe(
        cluster.name_server, timeout=60, check=children.refuse_dead, logs=str(server.output)
    ) as probe:
        probe.await_name_server()
        if server is not cluster.servers[0]:
            probe.await_brokers([server])


def _children(cluster: LocalCluster) -> Children:
    assert cluster._children is not None
    return cluster._children
