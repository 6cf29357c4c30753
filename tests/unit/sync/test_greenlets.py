"""Processes that gevent or eventlet has patched: one a scene, since patching changes a whole process."""

import subprocess
import sys
from types import ModuleType

import pytest

from rmqtools import Producer, ProducerConfig
from rmqtools.errors import ClientStateError
from rmqtools.testing import FakeCluster
from tests.support.greenlets_run import PRINTED, run_scene

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def cluster():
    with FakeCluster() as cluster:
        yield cluster


@pytest.mark.parametrize("scene", PRINTED)
def test_blocking_clients_work_where_threads_are_greenlets(scene, cluster):
    cluster.create_topic(scene, queues=4)

    assert run_scene(scene, {"name_server": cluster.name_server}, scene) == PRINTED[scene]


def check_program(program: str) -> None:
    """Run a program that prints 0, and nothing else."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_two_fake_clusters_run_where_threads_are_greenlets():
    check_program("""
from gevent import monkey; monkey.patch_all()
from rmqtools import Message, Producer, ProducerConfig
from rmqtools.testing import FakeCluster
with FakeCluster(), FakeCluster() as cluster:
    cluster.create_topic("orders", queues=1)
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        print(producer.send(Message("orders", b"body")).queue_offset)
""")


def test_threads_of_a_process_with_patched_sockets_lend_no_connections(cluster):
    cluster.create_topic("sockets", queues=1)
    check_program(f"""
from gevent import monkey; monkey.patch_all(thread=False)
from rmqtools import Message, Producer, ProducerConfig
with Producer(ProducerConfig(name_server={cluster.name_server!r})) as producer:
    producer.send(Message("sockets", b"body"))
    print(len(producer._producer._client.remoting.pool))
""")


@pytest.mark.parametrize("patched", ["thread", "socket"])
def test_eventlet_is_refused_by_name_before_anything_starts(patched, monkeypatch):
    monkeypatch.setitem(sys.modules, "eventlet.patcher", eventlet_that_patches(patched))

    with pytest.raises(ClientStateError, match=r"eventlet has patched .* use gevent"):
        Producer(ProducerConfig(name_server="127.0.0.1:9876"))


def test_eventlet_that_has_patched_nothing_is_no_obstacle(monkeypatch):
    monkeypatch.setitem(sys.modules, "eventlet.patcher", eventlet_that_patches(""))

    with Producer(ProducerConfig(name_server="127.0.0.1:9876")) as producer:
        assert producer.client_id


def eventlet_that_patches(patched: str) -> ModuleType:
    """eventlet's own module that says what it has patched; eventlet itself would change this process."""
    patcher = ModuleType("eventlet.patcher")
    vars(patcher)["is_monkey_patched"] = lambda module: module == patched
    return patcher
