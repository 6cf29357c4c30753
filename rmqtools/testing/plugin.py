"""The pytest plugin: fixtures for tests of programs on RocketMQ, on the fake cluster or on a real one.

pytest finds it by its entry point where ``rmqtools`` is installed. ``--rocketmq=real``, or the ini option
``rocketmq = real``, lets the same tests run on a real cluster. A fixture of the same name in a conftest.py
takes the place of one of these.
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rmqtools import Admin, Client, ClientConfig, Producer, ProducerConfig
from rmqtools.allocate import client_address
from rmqtools.cluster import LocalCluster
from rmqtools.testing.drain import Drain
from rmqtools.testing.fake import FakeCluster
from rmqtools.testing.pinned_group import PinnedGroup

_BY_KIND = {"fake": "fake_rocketmq", "real": "rocketmq"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let users choose the cluster."""
    text = "cluster of the fixtures of rmqtools: fake (in this process) or real (from the server's jars)"
    parser.getgroup("rocketmq").addoption("--rocketmq", choices=_BY_KIND, help=text)
    parser.addini("rocketmq", f"{text}; --rocketmq wins", default="fake")


@pytest.fixture(scope="session")
def rocketmq_settings() -> Mapping[str, Any]:
    """Arguments of :class:`rmqtools.cluster.LocalCluster` for ``rocketmq``; override it to change them."""
    return {"brokers": 1}


@pytest.fixture(scope="session")
def rocketmq(rocketmq_settings: Mapping[str, Any]) -> Iterator[LocalCluster]:
    """Start a real cluster once per test run, from the server's jars. Needs Java 17 or newer."""
    with LocalCluster(**rocketmq_settings) as cluster:
        yield cluster


@pytest.fixture
def fake_rocketmq() -> Iterator[FakeCluster]:
    """Make a cluster in this process for one test: at once, without Java. Its ``fault`` makes faults."""
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
def rocketmq_cluster(request: pytest.FixtureRequest) -> LocalCluster | FakeCluster:
    """Return the cluster that the test names as well, else the one of the option."""
    named = {"fake_rocketmq", "rocketmq"} & set(request.fixturenames)
    if len(named) == 2:
        raise pytest.UsageError(
            f"{request.node.nodeid} has both rocketmq and fake_rocketmq: name the one that topic, producer, "
            "pinned_group and drain are to use"
        )
    name = named.pop() if named else _BY_KIND[_kind(request.config)]
    cluster: LocalCluster | FakeCluster = request.getfixturevalue(name)
    return cluster


def _kind(config: pytest.Config) -> str:
    kind: str = config.getoption("--rocketmq") or config.getini("rocketmq")
    if kind not in _BY_KIND:
        raise pytest.UsageError(f"ini option rocketmq = {kind!r}: want {' or '.join(_BY_KIND)}")
    return kind


@pytest.fixture
def rocketmq_client(rocketmq_cluster: LocalCluster | FakeCluster) -> Iterator[Client]:
    """Yield a started client of the cluster."""
    with Client(ClientConfig(name_server=rocketmq_cluster.name_server)) as client:
        yield client


@pytest.fixture
def rocketmq_admin(rocketmq_client: Client) -> Iterator[Admin]:
    """Administration of the cluster."""
    with Admin(rocketmq_client) as admin:
        yield admin


@pytest.fixture
def topic(rocketmq_admin: Admin) -> str:
    """Create a topic with four queues on each broker, and return its name."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    rocketmq_admin.create_topic(name, read_queue_nums=4, write_queue_nums=4)
    return name


@pytest.fixture
def producer(rocketmq_cluster: LocalCluster | FakeCluster) -> Iterator[Producer]:
    """Yield a started producer."""
    config = ProducerConfig(name_server=rocketmq_cluster.name_server, group="tests")
    with Producer(config) as producer:
        yield producer


@pytest.fixture
def pinned_group(rocketmq_client: Client, rocketmq_admin: Admin) -> PinnedGroup:
    """Make a new consumer group, pinned to this machine: see :class:`PinnedGroup`."""
    address = client_address(rocketmq_client.client_id)
    assert address is not None
    return PinnedGroup(rocketmq_admin, f"group-{uuid.uuid4().hex[:12]}", str(address))


@pytest.fixture
def drain(rocketmq_client: Client, rocketmq_admin: Admin) -> Drain:
    """``drain(topic, count)``: the messages of a topic that no earlier call has returned."""
    return Drain(rocketmq_client, rocketmq_admin)
