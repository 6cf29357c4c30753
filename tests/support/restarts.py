"""Killing servers of a local cluster, and starting them again on the files and ports they had."""

import os
import shutil
import signal

from rmqtools import ClientConfig
from rmqtools.cluster import LocalCluster
from rmqtools.cluster.children import Children
from rmqtools.cluster.jars import ensure_jars
from rmqtools.cluster.java import find_java
from rmqtools.cluster.readiness import ReadinessProbe
from rmqtools.cluster.state import load_state


def kill(cluster: LocalCluster, name: str) -> None:
    """End one server as a power cut would; the cluster's own processes only."""
    pid = pid_of(cluster, name)
    os.kill(pid, signal.SIGKILL)
    for _, process in children_of(cluster)._started:
        if process.pid == pid:
            process.wait(20)


def pid_of(cluster: LocalCluster, name: str) -> int:
    """The process of a server."""
    state = load_state(cluster.directory)
    assert state is not None
    return next(server.pid for server in state.servers if server.name == name)


def start(cluster: LocalCluster, name: str, *, wait: bool = True) -> None:
    """Start a server that was killed; ``wait`` until it answers."""
    server = next(one for one in cluster.servers if one.name == name)
    children = children_of(cluster)
    children.start(server, find_java(), ensure_jars())
    children.state(owner=os.getpid(), detached=False).persist(cluster.directory)
    if wait:
        await_ready(cluster, name)


def await_ready(cluster: LocalCluster, name: str) -> None:
    """Wait until a server answers. A broker is registered then; with a name server, all brokers are."""
    server = next(one for one in cluster.servers if one.name == name)
    children = children_of(cluster)
    config = ClientConfig(name_server=cluster.name_server)
    with ReadinessProbe(config, timeout=120, check=children.refuse_dead, logs=str(server.output)) as probe:
        probe.await_name_server()
        if server is cluster.servers[0]:
            alive = {one.name for one, process in children._started if process.poll() is None}
            probe.await_brokers([one for one in cluster.servers[1:] if one.name in alive])
        else:
            probe.await_brokers([server])


def children_of(cluster: LocalCluster) -> Children:
    """The processes of a running cluster."""
    assert cluster._children is not None
    return cluster._children


def empty(cluster: LocalCluster, name: str) -> None:
    """Delete what a killed broker has stored."""
    shutil.rmtree(next(one for one in cluster.servers if one.name == name).home / "store")
