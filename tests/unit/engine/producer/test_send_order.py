"""Order within a queue: one request of each on the wire, first come, first served."""

import asyncio
from typing import Any

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.errors import SendError
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster, RequestCode
from tests.support.behind_proxy import PROXY_FIELDS
from tests.support.scripted_cluster import silent, stored
from tests.unit.engine.producer.test_send import producing


async def sends_on_the_wire(producer, cluster, expected: int) -> int:
    """How many sends have reached the broker once it has read all that was written."""
    remoting = producer._client.remoting
    command = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
    await remoting.invoke_ok(cluster.addrs["a"], command)
    while len(cluster.sends) < expected:
        await remoting.invoke_ok(cluster.addrs["a"], command)
    await remoting.invoke_ok(cluster.addrs["a"], command)
    return len(cluster.sends)


@pytest.mark.parametrize(("queues", "expected"), [(1, 1), (3, 3)])
async def test_send_many_has_one_batch_of_each_queue_on_the_wire(queues, expected):
    scene = producing({"a": silent}, cluster_settings={"queues": queues}, max_batch_bytes=1000)
    async with scene as (producer, cluster):
        messages = [Message("T", bytes(900)) for _ in range(9)]
        sending = asyncio.create_task(producer.send_many(messages))
        assert await sends_on_the_wire(producer, cluster, expected) == expected
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


@pytest.mark.parametrize(("keys", "expected"), [(("k", "k"), 1), (("order-1", "a"), 2)])
async def test_orderly_sends_of_one_queue_wait_for_one_another(keys, expected):
    async with producing({"a": silent}) as (producer, cluster):
        await producer._client.routes.publish_info("T")
        sends = [asyncio.create_task(producer.send_orderly(Message("T", b"x", sharding_key=k))) for k in keys]
        assert await sends_on_the_wire(producer, cluster, expected) == expected
        for send in sends:
            send.cancel()
        await asyncio.gather(*sends, return_exceptions=True)


async def test_an_orderly_send_whose_turn_does_not_come_was_not_sent():
    async with producing({"a": silent}) as (producer, cluster):
        first = asyncio.create_task(producer.send_orderly(Message("T", b"x", sharding_key="k"), timeout=5))
        await sends_on_the_wire(producer, cluster, 1)
        with pytest.raises(SendError, match=r"its turn did not come within 0\.1 s: nothing was sent"):
            await producer.send_orderly(Message("T", b"y", sharding_key="k"), timeout=0.1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)

    assert len(cluster.sends) == 1


async def test_orderly_sends_keep_their_order_also_while_the_first_of_them_waits_for_the_route():
    async with producing({"a": stored}) as (producer, cluster):
        late: list[asyncio.Task[Any]] = []

        def send(number: int) -> asyncio.Task[Any]:
            return asyncio.create_task(producer.send_orderly(Message("T", b"%d" % number, sharding_key="k")))

        # called when the route is known and those who wait for it have not woken up yet
        producer._client.routes.on_change(lambda topic: late.append(send(9)))
        await asyncio.gather(*(send(number) for number in range(9)))
        await asyncio.gather(*late)

    assert [int(request.body) for _, request in cluster.sends] == list(range(10))


# through a proxy, which leaves requests unanswered when there are several on the wire


HELD = RemotingCommand(RequestCode.PULL_MESSAGE, {"sysFlag": "2"})  # waits for no other request


async def test_through_a_proxy_one_batch_is_on_the_wire_at_a_time():
    async with producing({"a": silent}, max_batch_bytes=1000) as (producer, cluster):
        client = producer._client
        client.endpoint.note_route_answer(cluster.name_server, PROXY_FIELDS)
        cluster.fault(code=RequestCode.PULL_MESSAGE, times=None, answer=response(0, 0))
        messages = [Message("T", bytes(90)) for _ in range(60)]
        sending = asyncio.create_task(producer.send_many(messages))
        while not cluster.sends:
            await client.remoting.invoke(cluster.addrs["a"], HELD)
        await client.remoting.invoke(cluster.addrs["a"], HELD)
        assert len(cluster.sends) == 1
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


def test_connections_of_a_process_do_not_count_their_requests_alike():
    with FakeCluster() as cluster:
        for _ in range(3):
            with Producer(ProducerConfig(name_server=cluster.name_server, group="many")) as producer:
                producer.send(Message("T", b"x"))
        opaques = [request.opaque for request in cluster.requests(code=RequestCode.GET_ROUTEINFO_BY_TOPIC)]
    assert len(set(opaques)) == len(opaques)
