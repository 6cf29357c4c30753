"""The real cluster of a test run, one for all its processes: idle brokers keep processors busy.

The first process that needs it starts it, and waits at its end until no other one uses it. Tests change no
setting of its brokers, and name their topics and groups for themselves.
"""

import fcntl
import os
import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rmqtools.cluster import LocalCluster
from rmqtools.cluster.file_lock import FileLock
from rmqtools.cluster.server import Server
from tests.support.resting import RestingCluster

_IN_USE = pytest.StashKey[ExitStack]()
_SETTINGS = {"transactionCheckInterval": "2000"}


@dataclass(frozen=True)
class SharedCluster:
    """The properties of a :class:`LocalCluster` that tests use, for all processes."""

    servers: tuple[Server, ...]
    name_server: str
    broker_addrs: dict[str, str]
    client_settings: dict[str, Any]
    exposed_ports: list[int]


@contextmanager
def shared_cluster(folder: Path) -> Iterator[SharedCluster]:
    """Give the cluster of this folder; the process that comes first runs it until all others have left."""
    first, known = FileLock(folder / "first"), folder / "servers"
    with ExitStack() as stack:
        first.acquire(wait=True)
        try:
            users = stack.enter_context((folder / "users").open("w"))
            if not known.exists():
                cluster = stack.enter_context(RestingCluster(brokers=2, broker_settings=_SETTINGS))
                stack.callback(fcntl.flock, users, fcntl.LOCK_EX)  # waits for the other processes
                known.write_bytes(pickle.dumps(_described(cluster)))
                stack.callback(known.unlink)  # who comes from now on starts another one
            fcntl.flock(users, fcntl.LOCK_SH)
        finally:
            first.release()
        yield pickle.loads(known.read_bytes())


def _described(cluster: LocalCluster) -> SharedCluster:
    return SharedCluster(
        tuple(cluster.servers),
        cluster.name_server,
        cluster.broker_addrs,
        cluster.client_settings,
        cluster.exposed_ports,
    )


@pytest.fixture(scope="session")
def local_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SharedCluster:
    """A name server and two masters, once per test run; half messages are looked at every two seconds."""
    own = tmp_path_factory.getbasetemp()
    stack = request.session.stash.setdefault(_IN_USE, ExitStack())
    return stack.enter_context(shared_cluster(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave the cluster; not in the fixture, since no test has the time to wait for other processes."""
    if _IN_USE in session.stash:
        session.stash[_IN_USE].close()
