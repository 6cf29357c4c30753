"""Closing a producer: at any time, twice, from any state, and to its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rmqtools import Message, ProducerConfig
from rmqtools.aio import Producer, TransactionProducer
from rmqtools.errors import ClientStateError
from rmqtools.testing import Reaction, RequestCode
from tests.support.scripted_cluster import ScriptedCluster, silent, stored
from tests.support.scripted_transactions import TransactionBroker, until
from tests.unit.engine.producer.test_transaction import Listener


def farewells(cluster: ScriptedCluster) -> int:
    return len(cluster.requests(RequestCode.UNREGISTER_CLIENT))


def producer_of(kind: type[Producer], name_server: str) -> Producer:
    config = ProducerConfig(name_server=name_server, group="g", request_timeout=0.15)
    return kind(config, Listener(go_on=asyncio.Event())) if kind is TransactionProducer else kind(config)


@pytest.fixture(params=[Producer, TransactionProducer])
def kind(request) -> type[Producer]:
    return request.param


@asynccontextmanager
async def closing(kind: type[Producer]) -> AsyncIterator[tuple[Any, ScriptedCluster]]:
    """A producer that has sent a message, and a cluster that answers no goodbye.

    At the end of the block the producer is closed, and nothing is left open.
    """
    async with ScriptedCluster({"a": stored}).serving() as cluster:
        cluster.fault(code=RequestCode.UNREGISTER_CLIENT, times=None, answer=None)
        producer = producer_of(kind, cluster.name_server)
        await producer.start()
        await producer.send(Message("T", b"x"))
        yield producer, cluster
        assert producer._client.remoting.connections == {}
        assert len(producer._client.background) == 0


async def test_every_call_of_close_waits_for_the_end_and_the_group_is_left_once(kind):
    async with closing(kind) as (producer, cluster):
        first = asyncio.create_task(producer.close())
        await until(lambda: farewells(cluster))
        await producer.close()
        assert producer._client.remoting.connections == {}
        await first
        await producer.close()

    assert farewells(cluster) == 1


async def test_a_close_that_was_cut_short_goes_on_and_the_next_one_waits_for_its_end(kind):
    async with closing(kind) as (producer, cluster):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await producer.close()
        assert producer._client.remoting.connections != {}
        await producer.close()

    assert farewells(cluster) == 1


async def test_nothing_is_sent_once_closing_has_begun(kind):
    async with closing(kind) as (producer, cluster):
        first = asyncio.create_task(producer.close())
        await until(lambda: farewells(cluster))
        with pytest.raises(ClientStateError, match="closed: make a new one"):
            await producer.send(Message("T", b"x"))
        await first

    assert len(cluster.sends) == 1


async def test_a_step_that_fails_keeps_no_other_from_running(kind, caplog):
    async with closing(kind) as (producer, _):
        await producer._client.stop_tasks()  # a poll of the routes would remove the broker
        producer._client.routes.tables.broker_addrs["odd"] = {0: 5}  # no address: a defect
        await producer.close()

    assert "closing_step_failed" in caplog.text


async def test_a_producer_that_was_never_started_can_be_closed_and_not_be_started_afterwards(kind):
    producer = producer_of(kind, "127.0.0.1:1")
    await producer.close()
    await producer.close()
    with pytest.raises(ClientStateError, match="closed: make a new one"):
        await producer.start()


@pytest.mark.parametrize(
    ("heartbeats", "sends", "last", "text"),
    [
        pytest.param(None, silent, RequestCode.HEART_BEAT, "make a new one", id="heartbeat"),
        pytest.param(Reaction.PASS, silent, RequestCode.SEND_MESSAGE_V2, "before the reply to", id="send"),
        pytest.param(Reaction.PASS, stored, RequestCode.SEND_MESSAGE_V2, "before the reply to", id="reply"),
    ],
)
async def test_a_request_ends_at_once_when_the_producer_closes(heartbeats, sends, last, text):
    broker = TransactionBroker(sends=sends)
    broker.fault(code=RequestCode.HEART_BEAT, times=None, answer=heartbeats)
    async with broker.serving():
        producer = Producer(ProducerConfig(name_server=broker.name_server, group="g", request_timeout=20))
        await producer.start()
        asking = asyncio.create_task(producer.request(Message("T", b"question"), timeout=15))
        await broker.arrived(last)
        await producer.close()
        with pytest.raises(ClientStateError, match=text):
            await asyncio.wait_for(asking, 2)


async def test_a_check_that_does_not_end_is_waited_for_once_however_often_close_is_called(monkeypatch):
    monkeypatch.setattr("rmqtools.engine.producer.check_back._CLOSE_GRACE", 0.3)

    broker = TransactionBroker()
    async with broker.serving():
        producer: Any = producer_of(TransactionProducer, broker.name_server)
        await producer.start()
        await broker.arrived(RequestCode.HEART_BEAT)
        await broker.check("0" * 32, place=1)
        await until(lambda: producer._check_back._checking)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await producer.close()
        await producer.close()
        assert producer._check_back._checking == {}
        assert producer._client.remoting.connections == {}
