"""Many messages through a proxy, which leaves requests unanswered when there are several on the wire."""

import asyncio

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import FakeCluster
from tests.support.behind_proxy import PROXY_FIELDS
from tests.support.scripted_cluster import silent
from tests.unit.engine.producer.test_send import producing

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
