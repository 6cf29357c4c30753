"""Heartbeats before they are due: which brokers get one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.send_heartbeats import Announcer
from rmqtools.model.codes import RequestCode
from rmqtools.testing import FakeCluster


@asynccontextmanager
async def announcing(cluster: FakeCluster, clock) -> AsyncIterator[Announcer]:
    """What tells the broker of topic T about a client."""
    cluster.create_topic("T")
    client = ClientCore(ClientConfig(name_server=cluster.name_server, request_timeout=0.2), clock=clock)
    await client.routes.refresh("T")
    announcer = Announcer(client)
    yield announcer
    await announcer.close()
    await client.close()


def heartbeats(cluster: FakeCluster) -> int:
    return len(cluster.requests(code=RequestCode.HEART_BEAT))


async def test_a_broker_is_told_once_while_its_connection_is_open(clock):
    async with FakeCluster() as cluster, announcing(cluster, clock) as announcer:
        for _ in range(2):
            await announcer.announce(1.0)

        assert heartbeats(cluster) == 1


async def test_a_broker_that_is_silent_gets_another_heartbeat_after_five_seconds(clock):
    async with FakeCluster() as cluster, announcing(cluster, clock) as announcer:
        cluster.fault(code=RequestCode.HEART_BEAT, times=None, answer=None)
        for _ in range(2):
            await announcer.announce(1.0)
        at_once = heartbeats(cluster)
        clock.advance(5.0)
        await announcer.announce(1.0)

        assert (at_once, heartbeats(cluster)) == (1, 2)
