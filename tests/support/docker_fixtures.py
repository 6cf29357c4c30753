"""Fixtures of tests on the Docker cluster and with the Java peer; loaded by tests/conftest.py.

pytest-docker starts the cluster once per test run. Whatever happens then, it is removed at the end, unless it
was started with ``make cluster-up``. Where there is no Docker and no right to install it, the tests fail with
one line.
"""

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from rmqtools import Admin, ClientConfig
from tests.support.docker_cluster import DockerCluster
from tests.support.docker_project import DockerError, DockerProject
from tests.support.java_peer import JavaPeer, JavaPeerError
from tests.support.patience import PATIENT_REQUEST
from tests.support.resting import late_timers
from tests.support.workers import is_on_docker

_IN_USE = pytest.StashKey[ExitStack]()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """In a parallel run, remove the cluster after the last test on it: idle servers keep processors busy."""
    if "PYTEST_XDIST_WORKER" not in os.environ or nextitem is None or is_on_docker(nextitem.path):
        return
    if is_on_docker(item.path) and _IN_USE in item.session.stash:
        item.session.stash[_IN_USE].close()


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """End the run with clean-up on SIGTERM, which a CI sends at its time limit, as on Ctrl-C."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@pytest.fixture(scope="session")
def docker_project(request: pytest.FixtureRequest) -> Iterator[DockerProject]:
    """The checkout's compose project, ready for ``up``; everything is taken away at the end."""
    project = DockerProject()
    with _terminated_as_interrupted(), ExitStack() as stack:
        request.session.stash[_IN_USE] = stack
        try:
            with late_timers():  # of the daemon too, if it is started here, and so of the containers
                stack.enter_context(project.in_use())
        except DockerError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        yield project


@pytest.fixture(scope="session")
def docker_compose_command(docker_project: DockerProject) -> str:
    """Overrides pytest-docker's: the plugin or Debian's program, with our environment."""
    return docker_project.compose_command()


@pytest.fixture(scope="session")
def docker_compose_file(docker_project: DockerProject) -> str:
    """Overrides pytest-docker's."""
    return str(docker_project.compose_file)


@pytest.fixture(scope="session")
def docker_compose_project_name(docker_project: DockerProject) -> str:
    """Overrides pytest-docker's name, whose process id would hide the containers of a killed run."""
    return docker_project.layout.project


@pytest.fixture(scope="session")
def docker_setup() -> list[str]:
    """Overrides pytest-docker's: compose 1.29 knows no --wait, and docker_cluster asks by protocol."""
    return ["up -d"]


@pytest.fixture(scope="session")
def docker_cleanup() -> list[str]:
    """Nothing: pytest-docker would not clean up after a failed start, docker_project always does."""
    return []


@pytest.fixture(scope="session")
def docker_cluster(docker_services: object, docker_project: DockerProject) -> DockerCluster:
    """The running cluster: ``.name_server``, ``.broker_addrs``, and faults (see ``faulty_cluster``)."""
    cluster = DockerCluster(docker_project)
    try:
        cluster.wait_ready()
    except DockerError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    return cluster


@pytest.fixture
def faulty_cluster(docker_cluster: DockerCluster) -> Iterator[DockerCluster]:
    """The cluster for a test that kills or pauses servers; restored after the test."""
    yield docker_cluster
    docker_cluster.restore()


@pytest.fixture(scope="session")
def new_topic(docker_cluster: DockerCluster) -> Callable[..., str]:
    """Call it for the name of a new topic with so many queues on each master."""

    def create(*, queues: int = 8) -> str:
        topic = f"test-{uuid.uuid4().hex}"
        config = ClientConfig(name_server=docker_cluster.name_server, request_timeout=PATIENT_REQUEST)
        with Admin(config) as admin:
            admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues)
        return topic

    return create


@pytest.fixture(scope="session")
def java_peer() -> JavaPeer:
    """Programs on the official Java client, compiled from tests/support/java."""
    try:
        return JavaPeer.compiled()
    except JavaPeerError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
