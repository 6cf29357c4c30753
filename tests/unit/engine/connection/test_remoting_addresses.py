"""Addresses of brokers: mapped before connecting, and named where nothing can be reached there.

For some addresses that no resolver takes, Python raises UnicodeError or ValueError, not OSError.
"""

import asyncio

import pytest

from rmqtools import Message, ProducerConfig, aio
from rmqtools.model.codes import RequestCode
from tests.support.scripted_cluster import ScriptedCluster, stored
from tests.unit.engine.connection.test_opening import failure

NOWHERE = "127.9.9.9"


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        pytest.param(
            {"127.9.9.*": "127.8.8.8:*"},
            f"the route gave {NOWHERE}:10911, broker_address_map made it 127.8.8.8:10911",
            id="mapped",
        ),
        pytest.param({}, f"set broker_address_map, e.g. {{'{NOWHERE}:10911': 'host:port'}}", id="no-rule"),
    ],
)
async def test_the_error_of_an_unreachable_broker_names_its_addresses_and_the_option(rules, text):
    assert text in await failure(f"{NOWHERE}:10911", broker_address_map=rules)


async def test_name_servers_keep_their_address_under_rules_for_brokers():
    text = await failure("127.0.0.1:1", broker_address_map={"*": "127.8.8.8:10911"})

    assert text.startswith("cannot connect to 127.0.0.1:1: ")
    assert "127.8.8.8" not in text


@pytest.mark.parametrize("tls_enable", [False, True])
@pytest.mark.parametrize(
    "host",
    [
        pytest.param("a..b", id="empty label"),
        pytest.param("x" * 64, id="label of 64 characters"),
        pytest.param("a\0b", id="NUL"),
        pytest.param("\ud800", id="lone surrogate"),
    ],
)
async def test_a_name_that_cannot_be_resolved_is_a_connect_error_that_names_it(host, tls_enable):
    assert f"cannot connect to {host}:10911" in await failure(f"{host}:10911", tls_enable=tls_enable)


@pytest.mark.parametrize("addr", ["broker-a", "broker-a:0", "broker-a:" + "9" * 5000])
async def test_an_address_of_a_route_that_is_none_is_a_connect_error(addr):
    assert "want host:port" in await failure(addr)


async def test_a_broker_with_an_impossible_name_costs_neither_sends_nor_heartbeats_nor_a_clean_close():
    async with ScriptedCluster({"a": stored, "b": stored}).serving() as cluster:
        cluster.announce("a", "a..b:10911")
        config = ProducerConfig(name_server=cluster.name_server, heartbeat_broker_interval=5.0)
        async with aio.Producer(config) as producer:
            results = [await producer.send(Message("T", b"x")) for _ in range(8)]
            assert {result.queue.broker_name for result in results} == {"b"}
            await asyncio.sleep(12)
            assert len(cluster.requests(RequestCode.HEART_BEAT, broker="b")) == 3
        assert len(cluster.requests(RequestCode.UNREGISTER_CLIENT, broker="b")) == 1
        assert cluster.requests(RequestCode.UNREGISTER_CLIENT, broker="a") == []
        assert not [task for task in asyncio.all_tasks() if task.get_name() in ("heartbeat", "route_poll")]
