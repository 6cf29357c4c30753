"""A 5.x proxy in front of a local cluster that runs already."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rmqtools import ClientConfig
from rmqtools.cluster import LocalCluster, ensure_jars
from rmqtools.cluster.children import Children
from rmqtools.cluster.java import find_java
from rmqtools.cluster.lock import locked_jars
from rmqtools.cluster.ports import PortPicker
from rmqtools.cluster.readiness import ReadinessProbe
from rmqtools.cluster.server import proxy


@contextlib.contextmanager
def running_proxy(cluster: LocalCluster, directory: Path) -> Iterator[str]:
    """Start a proxy of ``cluster`` in a directory of its own; give its address, and stop it at the end."""
    first = replace(cluster.servers[0], directory=directory)
    server = proxy(*PortPicker().proxy_ports(), name_server=first)
    children = Children(directory)
    try:
        children.start(server, find_java(), ensure_jars(locked_jars(proxy=True)))
        logs = f"{directory}/*/server.log"
        config = ClientConfig(name_server=cluster.name_server)
        with ReadinessProbe(config, timeout=120.0, check=children.refuse_dead, logs=logs) as probe:
            probe.await_proxy(server)
        yield server.address
    finally:
        children.stop(grace=0)
