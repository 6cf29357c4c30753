"""The cost of a route poll of a client with ten thousand topics."""

import asyncio
import contextlib
import threading
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.protocol.headers.topic import GetRouteInfoRequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, request, response
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


async def bare_requests(client: ClientCore, addr: str) -> float:
    """The same requests and answers, which nobody looks at."""
    began = time.thread_time()
    for number in range(TOPICS):
        asked = request(GetRouteInfoRequestHeader(topic=f"topic-{number}", accept_standard_json_only=True))
        await client.remoting.invoke_ok(addr, asked)
    return time.thread_time() - began


def test_a_round_over_ten_thousand_routes_costs_little_more_than_its_requests_and_memory_stays_small():
    async def scenario(addr: str) -> tuple[float, int]:
        client = ClientCore(ClientConfig(name_server=addr))
        tracemalloc.start()
        for number in range(TOPICS):
            await client.routes.refresh(f"topic-{number}")
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        pairs = [(await one_round(client), await bare_requests(client, addr)) for _ in range(3)]
        await client.close()
        return min(round_ / bare for round_, bare in pairs), held

    with name_server() as addr:
        ratio, held = asyncio.run(scenario(addr))

    assert held < 100e6
    assert ratio < 2.5  # 1.7; 3.5 where every body is parsed
