"""A master with a slave, started from the jars: SYNC_MASTER, and two brokers have to store each message."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rmqtools import Admin, ClientConfig
from rmqtools.cluster import LocalCluster
from rmqtools.cluster.jars import ensure_jars
from rmqtools.cluster.java import find_java
from rmqtools.cluster.ports import PortPicker
from rmqtools.errors import RocketMQError
from tests.support import restarts
from tools.measure.faults.site import LocalSite

MASTER, SLAVE = "broker-a", "broker-a-slave"
_MASTER_SETTINGS = {
    "brokerRole": "SYNC_MASTER",
    "inSyncReplicas": "2",
    "slaveTimeout": "1500",
    "slaveReadEnable": "true",
}
_READY_SECONDS = 90.0


class ReplicaSite(LocalSite):
    """One master and its slave. Only the master is among ``broker_addrs``."""

    def __init__(self, cluster: LocalCluster) -> None:
        super().__init__(cluster)
        master = cluster.servers[1]
        port = PortPicker().broker_port()
        store = master.directory / SLAVE / "store"
        own = {
            "brokerId": "1",
            "brokerRole": "SLAVE",
            "listenPort": str(port),
            "storePathRootDir": str(store),
            "storePathCommitLog": str(store / "commitlog"),
        }
        slave = replace(master, name=SLAVE, port=port, settings={**master.settings, **own})
        cluster._servers = (*cluster.servers, slave)
        restarts.children_of(cluster).start(slave, find_java(), ensure_jars())
        restarts.children_of(cluster).state(owner=os.getpid(), detached=False).persist(cluster.directory)
        self.await_both()

    def start(self, service: str, *, wait: bool = True) -> None:
        """See :class:`tools.measure.faults.site.Site`."""
        restarts.start(self._cluster, service, wait=False)
        del self._away[service]
        if wait:
            self.await_both()

    def await_both(self) -> None:
        """Wait until the name server has master and slave.

        Raises:
            TimeoutError: it has not after a minute and a half.
        """
        deadline = time.monotonic() + _READY_SECONDS
        config = ClientConfig(name_server=self.name_server)
        with Admin(config) as admin:
            while True:
                try:
                    known = admin.fetch_cluster_info().broker_addr_table.get(MASTER)
                    if known is not None and set(known.broker_addrs) == {0, 1}:
                        return
                except RocketMQError:
                    pass
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no master with a slave after {_READY_SECONDS:.0f} s")
                time.sleep(0.2)


@contextmanager
def replica_site(folder: Path) -> Iterator[ReplicaSite]:
    """Start both; stop both at the end."""
    with LocalCluster(directory=folder / "replica", broker_settings=_MASTER_SETTINGS) as cluster:
        yield ReplicaSite(cluster)
