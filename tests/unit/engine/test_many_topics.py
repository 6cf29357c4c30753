"""A client that knows ten thousand topics: what a round of looking at all their routes costs."""

import asyncio
import contextlib
import threading
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.client import ClientCore
from rmqtools.protocol.command import RemotingCommand, response
from tests.support.scripted_peer import ScriptedPeer

pytestmark = pytest.mark.slow

TOPICS = 10_000
ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"broker-%d","cluster":"C"}],'
    b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-%d","perm":6,"readQueueNums":8,'
    b'"topicSysFlag":0,"writeQueueNums":8}]}'
)


def route_of(request: RemotingCommand) -> RemotingCommand:
    number = int((request.ext_fields["topic"] or "").rpartition("-")[2]) % 16
    return response(0, 0, body=ROUTE % (number, number))


@contextlib.contextmanager
def name_server() -> Iterator[str]:
    """On a thread and a loop of its own, so that its work does not count as the client's."""
    addrs: list[str] = []
    ready, loop, end = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with ScriptedPeer(route_of).serving() as peer:
            addrs.append(peer.addr)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait(10)
    yield addrs[0]
    loop.call_soon_threadsafe(end.set)
    thread.join()
    loop.close()


async def one_round(client: ClientCore) -> float:
    began = time.thread_time()
    for number in range(TOPICS):
        assert not await client.routes.refresh(f"topic-{number}")
    return time.thread_time() - began


def test_a_round_over_ten_thousand_routes_takes_less_than_a_second_and_memory_stays_small():
    async def scenario(addr: str) -> tuple[float, int]:
        client = ClientCore(ClientConfig(name_server=addr))
        tracemalloc.start()
        for number in range(TOPICS):
            await client.routes.refresh(f"topic-{number}")
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        seconds = [await one_round(client) for _ in range(2)]
        await client.close()
        return min(seconds), held

    with name_server() as addr:
        seconds, held = asyncio.run(scenario(addr))

    assert held < 100e6
    assert seconds < 1.0
