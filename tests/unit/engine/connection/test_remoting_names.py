"""Addresses that no resolver takes: Python raises UnicodeError or ValueError for them, not OSError."""

import asyncio

import pytest

from rmqtools.aio import Producer
from rmqtools.config import ClientConfig, ProducerConfig
from rmqtools.engine.connection import client as client_module
from rmqtools.engine.connection.client import local_address
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import ConfigError, RemotingConnectError
from rmqtools.model.codes import RequestCode
from rmqtools.model.message import Message
from rmqtools.protocol.wire.command import RemotingCommand
from tests.support.scripted_cluster import ScriptedCluster, stored
from tests.support.scripted_transactions import until

NAMES = [
    pytest.param("a..b", id="empty label"),
    pytest.param("x" * 64, id="label of 64 characters"),
    pytest.param("a\0b", id="NUL"),
    pytest.param("\ud800", id="lone surrogate"),
]


@pytest.mark.parametrize("host", NAMES)
@pytest.mark.parametrize("tls_enable", [False, True])
async def test_a_name_that_cannot_be_resolved_is_a_connect_error_that_names_it(host, tls_enable):
    remoting = Remoting(ClientConfig(name_server="127.0.0.1:1", tls_enable=tls_enable))
    with pytest.raises(RemotingConnectError) as caught:
        await remoting.invoke(f"{host}:10911", RemotingCommand(RequestCode.HEART_BEAT))
    assert f"cannot connect to {host}:10911" in str(caught.value)
    await remoting.close()


@pytest.mark.parametrize("addr", ["broker-a", "broker-a:0", "broker-a:" + "9" * 5000])
async def test_an_address_of_a_route_that_is_none_is_a_connect_error(addr):
    remoting = Remoting(ClientConfig(name_server="127.0.0.1:1"))
    with pytest.raises(RemotingConnectError, match="want host:port"):
        await remoting.connect(addr)
    await remoting.close()


def test_tls_files_with_a_nul_in_their_path_are_a_config_error():
    with pytest.raises(ConfigError, match="cannot be used"):
        Remoting(ClientConfig(name_server="127.0.0.1:1", tls_enable=True, tls_ca_file="a\0b"))


@pytest.mark.parametrize("host", [name for name in NAMES if name.id != "NUL"])
def test_the_own_address_is_told_whatever_the_name_server_is_called(host):
    assert local_address(ClientConfig(name_server=f"{host}:9876")) == "127.0.0.1"


class Heard(ScriptedCluster):
    """Records the brokers that got heartbeats, and the groups that were unregistered."""

    def __init__(self) -> None:
        super().__init__({"a": stored, "b": stored})
        self.heartbeats: list[str] = []
        self.farewells: list[str] = []

    def _broker(self, name):
        answer = super()._broker(name)

        def heard(request: RemotingCommand):
            if request.code == RequestCode.HEART_BEAT:
                self.heartbeats.append(name)
            if request.code == RequestCode.UNREGISTER_CLIENT:
                self.farewells.append(name)
            return answer(request)

        return heard


async def test_a_broker_with_an_impossible_name_costs_neither_sends_nor_heartbeats_nor_a_clean_close(
    monkeypatch,
):
    monkeypatch.setattr(client_module, "_FIRST_HEARTBEAT_DELAY", 0.01)
    cluster = Heard()

    async with cluster.serving():
        cluster.announce("a", "a..b:10911")
        config = ProducerConfig(name_server=cluster.name_server, heartbeat_broker_interval=0.01)
        async with Producer(config) as producer:
            results = [await producer.send(Message("T", b"x")) for _ in range(8)]
            assert {result.queue.broker_name for result in results} == {"b"}
            await until(lambda: len(cluster.heartbeats) >= 3)
        assert cluster.farewells == ["b"]
        assert not [task for task in asyncio.all_tasks() if task.get_name() in ("heartbeat", "route_poll")]


async def test_all_brokers_with_impossible_names_are_a_send_error_that_names_them():
    cluster = ScriptedCluster({"a": stored})
    async with cluster.serving():
        cluster.announce("a", "a..b:10911")
        async with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            with pytest.raises(Exception, match=r"cannot connect to a\.\.b:10911") as caught:
                await producer.send(Message("T", b"x"))
            assert type(caught.value).__name__ == "SendError"
