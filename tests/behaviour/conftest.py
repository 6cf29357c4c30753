"""Two sites for every test: the fake cluster, and a real one."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from rmqtools import Admin, ClientConfig, Producer, ProducerConfig
from rmqtools.testing import FakeCluster
from tests.behaviour.site import Site
from tests.behaviour.wire import Wire
from tests.support.patience import PATIENT_REQUEST


@pytest.fixture(
    params=[pytest.param("fake"), pytest.param("real", marks=pytest.mark.broker)],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """A cluster of two brokers; its first broker is asked."""
    if request.param == "real":
        cluster = request.getfixturevalue("local_cluster")
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            yield Site(cluster.name_server, admin, None)
        return
    with (
        FakeCluster(brokers=("broker-a", "broker-b")) as cluster,
        Admin(ClientConfig(name_server=cluster.name_server)) as admin,
    ):
        yield Site(cluster.name_server, admin, cluster)


@pytest.fixture
def make_wire(site: Site) -> Iterator[Callable[[], Wire]]:
    """``make_wire()``: another connection to the broker."""
    wires: list[Wire] = []

    def make() -> Wire:
        wires.append(Wire(site.addr))
        return wires[-1]

    yield make
    for wire in wires:
        wire.close()


@pytest.fixture
def wire(make_wire: Callable[[], Wire]) -> Wire:
    """A connection to the broker."""
    return make_wire()


@pytest.fixture
def producer(site: Site) -> Iterator[Producer]:
    """A producer that soon knows new queues."""
    config = ProducerConfig(
        name_server=site.name_server,
        group="tests",
        send_timeout=PATIENT_REQUEST,
        request_timeout=PATIENT_REQUEST,
        poll_name_server_interval=0.2,
    )
    with Producer(config) as producer:
        yield producer


@pytest.fixture
def group() -> str:
    """The name of a group that nobody has used."""
    return f"group-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(site: Site) -> str:
    """A topic of two queues on the broker."""
    return site.new_topic()
