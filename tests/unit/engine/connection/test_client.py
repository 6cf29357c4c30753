"""A client's id, its lifecycle, its heartbeats, and the memory that it keeps for later answers."""

import asyncio
import os
import platform
import subprocess
import sys

import pytest

from rmqtools import ClientConfig, ProducerConfig
from rmqtools.aio import Producer
from rmqtools.engine.connection.client import ClientCore, client_id, local_address
from rmqtools.errors import ClientStateError
from rmqtools.protocol.wire.bodies import parse_json
from rmqtools.testing import FakeCluster, RequestCode
from tests.support.scripted_peer import ScriptedPeer


@pytest.mark.parametrize(
    ("instance_name", "expected"),
    [
        pytest.param("orders", "10.0.0.1@orders", id="address-and-instance"),
        pytest.param(None, "10.0.0.1@7#42", id="address-pid-and-nanoseconds"),
    ],
)
def test_a_client_id_names_the_instance_or_is_unique(instance_name, expected):
    assert client_id("10.0.0.1", instance_name, pid=7, nanos=42) == expected


def test_two_clients_of_one_process_have_different_ids(clock):
    config = ClientConfig(name_server="127.0.0.1:1", client_ip="10.0.0.9")
    first = ClientCore(config, clock=clock)
    clock.advance(0.001)
    second = ClientCore(config, clock=clock)

    assert first.client_id.startswith("10.0.0.9@")
    assert first.client_id != second.client_id


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid", "a..b", "x" * 64, "\ud800"])
def test_the_own_address_is_the_one_towards_the_name_server_whatever_its_name(host):
    assert local_address(ClientConfig(name_server=f"{host}:9876")) == "127.0.0.1"


def test_range_reads_name_tools_consumer_or_the_group_given_in_its_namespace():
    default = ClientConfig(name_server="127.0.0.1:1", namespace="ns")
    given = ClientConfig(name_server="127.0.0.1:1", namespace="ns", read_group="analysts")

    assert ClientCore(default).read_group == "TOOLS_CONSUMER"
    assert ClientCore(given).read_group == "ns%analysts"


async def test_a_client_is_started_once():
    core = ClientCore(ClientConfig(name_server="127.0.0.1:1"))
    with pytest.raises(ClientStateError, match=r"is new: call start\(\)"):
        core.check_started()
    core.start()
    with pytest.raises(ClientStateError, match="is started: make a new one"):
        core.start()
    await core.close()
    await core.close()
    with pytest.raises(ClientStateError, match="is closed: make a new one"):
        core.check_started()


async def test_an_error_that_ends_a_background_task_is_logged(caplog):
    async def fail() -> None:
        raise RuntimeError("seven")

    core = ClientCore(ClientConfig(name_server="127.0.0.1:1"))
    core.start()
    core.spawn("doomed", fail())
    (doomed,) = [task for task in asyncio.all_tasks() if task.get_name() == "doomed"]
    await asyncio.wait([doomed])
    await core.close()
    assert "background_task_failed task='doomed' reason=\"RuntimeError('seven')\"" in caplog.text


async def test_closing_ends_a_question_for_a_route_without_complaint(caplog):
    asked = asyncio.Event()
    async with ScriptedPeer(lambda _: asked.set()).serving() as silent:
        core = ClientCore(ClientConfig(name_server=silent.addr))
        core.start()
        left, waiting = (asyncio.ensure_future(core.routes.refresh("T")) for _ in range(2))
        await asked.wait()
        left.cancel()
        await core.close()
        with pytest.raises(ClientStateError, match="closed meanwhile"):
            await waiting
        assert not [task for task in asyncio.all_tasks() if "Routes" in repr(task)]
    assert "name_server_failed" not in caplog.text


async def test_heartbeats_tell_every_master_the_groups_and_close_takes_them_back():
    async with FakeCluster(("a", "b")) as cluster:
        cluster.create_topic("T")
        config = ProducerConfig(name_server=cluster.name_server, group="orders", instance_name="i")
        async with Producer(config) as producer:
            await producer.fetch_publish_queues("T")
            await asyncio.sleep(2)

    for broker in ("a", "b"):
        body = parse_json(cluster.requests(RequestCode.HEART_BEAT, broker=broker)[0].body)
        (farewell,) = cluster.requests(RequestCode.UNREGISTER_CLIENT, broker=broker)
        assert (body["clientID"], body["producerDataSet"]) == ("127.0.0.1@i", [{"groupName": "orders"}])
        assert farewell.ext_fields["producerGroup"] == "orders"


# 10 MB in pieces as large as answers, taken and given back, on a thread: each has a heap of its own.
_PAGES_OF_A_ROUND = """
import asyncio, resource, threading
from rmqtools import ClientConfig
from rmqtools.engine.connection.client import ClientCore

async def start_client():
    core = ClientCore(ClientConfig(name_server="127.0.0.1:1"))
    core.start()
    await core.close()

def use_memory():
    for _ in range(5):
        [bytearray(b"x" * 100_000) for _ in range(100)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        [bytearray(b"x" * 100_000) for _ in range(100)]
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 10)

asyncio.run(start_client())
user = threading.Thread(target=use_memory)
user.start()
user.join()
"""


@pytest.mark.process
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have rules of their own")
def test_a_process_with_a_client_does_not_take_the_pages_of_freed_answers_again():
    untuned = {
        name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))
    }
    program = [sys.executable, "-c", _PAGES_OF_A_ROUND]
    ran = subprocess.run(program, capture_output=True, text=True, check=True, env=untuned)

    assert int(ran.stdout) < 100  # pages; 2,400 where all are taken again
