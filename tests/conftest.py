"""Fixtures that several kinds of tests share: a real local cluster, Spark, a clock.

The Docker cluster and the Java peer are in ``tests.support.docker_fixtures``.
"""

import gc
import inspect
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from rmqtools import Admin, Client, ClientConfig, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from tests.support.clock import ManualClock
from tests.support.patience import PATIENT_REQUEST
from tests.support.proxy import running_server
from tests.support.resting import RestingCluster
from tests.support.scripted_peer import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.shared_cluster import SharedCluster

# A busy machine may be slow: neither an example nor its making has a deadline.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("brief", _PATIENT, max_examples=3)
settings.register_profile("quick", _PATIENT, max_examples=15)
settings.register_profile("thorough", _PATIENT, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

pytest_plugins = [
    "tests.support.workers",
    "tests.support.docker_fixtures",
    "tests.support.patient_clients",
    "tests.support.shared_cluster",
    "tests.support.spark_limit",
]


def pytest_collection_finish() -> None:
    """Leave the thousands of tests that were collected out of every later look for garbage."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an ``async def`` test on a loop whose time jumps, for 20 seconds at the most."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    run(lambda: pyfuncitem.obj(**arguments))
    return True


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[LocalCluster]:
    """A name server and two masters of a module alone, which may pause, drain or change them."""
    with RestingCluster(brokers=2) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def proxy(local_cluster: "SharedCluster", tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a 5.x proxy of the local cluster, started once per test run, when first needed."""
    with running_server(local_cluster, tmp_path_factory.mktemp("proxy")) as server:
        yield server.address


@pytest.fixture(scope="session")
def client_config(local_cluster: "SharedCluster") -> ClientConfig:
    return ClientConfig(name_server=local_cluster.name_server, request_timeout=PATIENT_REQUEST)


@pytest.fixture(scope="session")
def admin(client_config: ClientConfig) -> Iterator[Admin]:
    with Admin(client_config) as admin:
        yield admin


@pytest.fixture
def client(client_config: ClientConfig) -> Iterator[Client]:
    with Client(client_config) as client:
        yield client


@pytest.fixture
def producer(local_cluster: "SharedCluster") -> Iterator[Producer]:
    config = ProducerConfig(
        name_server=local_cluster.name_server,
        group=f"tests-{os.getpid()}",  # its own: brokers check transactions with any member
        send_timeout=PATIENT_REQUEST,
        request_timeout=PATIENT_REQUEST,
    )
    with Producer(config) as producer:
        yield producer


@pytest.fixture
def make_topic(admin: Admin) -> Callable[..., str]:
    """Make a topic of its own name; 4 queues on each of two brokers unless said otherwise."""

    def make(*, queues: int = 4, **settings: Any) -> str:
        topic = f"test-{uuid.uuid4().hex[:12]}"
        admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues, **settings)
        return topic

    return make


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One local Spark for the test run; imported here, so that unit tests need none."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    )
    with pytest.MonkeyPatch.context() as patch:  # all processes of Spark inherit it from the JVM
        patch.setenv("RMQTOOLS_SPARK_PLUG_INS", "tests.spark.plug_ins")
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
