"""A whole client behind a map: the route names an address on which nothing listens."""

import pytest

from rmqtools import Message, ProducerConfig, aio
from rmqtools.errors import SendError
from tests.support.scripted_cluster import ScriptedCluster, stored

NOWHERE = "127.9.9.9"


@pytest.mark.parametrize(
    "address_map",
    [
        pytest.param({f"{NOWHERE}:*": "127.0.0.1:*"}, id="prefix"),
        pytest.param(lambda addr: addr.replace(NOWHERE, "127.0.0.1"), id="function"),
    ],
)
async def test_a_producer_reaches_a_broker_whose_advertised_address_leads_nowhere(address_map):
    async with ScriptedCluster({"broker-a": stored}).serving() as cluster:
        cluster.announce("broker-a", cluster.addrs["broker-a"].replace("127.0.0.1", NOWHERE))
        config = ProducerConfig(name_server=cluster.name_server, group="g", broker_address_map=address_map)
        async with aio.Producer(config) as producer:
            result = await producer.send(Message("Orders", b"found"))
        assert (result.queue.broker_name, result.queue_offset) == ("broker-a", 5)


async def test_a_send_that_reaches_no_broker_names_the_address_and_the_option():
    async with ScriptedCluster({"broker-a": stored}).serving() as cluster:
        cluster.announce("broker-a", f"{NOWHERE}:10911")
        async with aio.Producer(ProducerConfig(name_server=cluster.name_server, group="g")) as producer:
            with pytest.raises(SendError, match=rf"{NOWHERE}:10911.*set broker_address_map"):
                await producer.send(Message("Orders", b"lost"))
