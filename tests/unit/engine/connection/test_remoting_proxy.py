"""Requests to a proxy: it drops answers while 64 KB of earlier ones wait on the connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import RemotingConnectError, RemotingTimeoutError
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, response
from tests.support.behind_proxy import PROXY_FIELDS
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.consumer.push_scene import idle

PULL = RemotingCommand(RequestCode.PULL_MESSAGE, {"sysFlag": "4"})
HELD = RemotingCommand(RequestCode.PULL_MESSAGE, {"sysFlag": "6"})  # until messages come
BATCH = RemotingCommand(RequestCode.SEND_BATCH_MESSAGE)
LIST = RemotingCommand(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
SEND = RemotingCommand(RequestCode.SEND_MESSAGE_V2)


class Proxy(ScriptedPeer):
    """A proxy that answers held pulls, and other requests when the test says so."""

    def __init__(self) -> None:
        super().__init__(lambda request: response(0, 0) if request.ext_fields == HELD.ext_fields else None)

    @property
    def asked(self) -> list[RemotingCommand]:
        return [request for request in self.requests if request.ext_fields != HELD.ext_fields]

    async def answer(self, request: RemotingCommand) -> None:
        await self.say(encode_command(response(0, request.opaque, remark=str(request.opaque))))


async def written(client: Remoting, proxy: Proxy) -> list[RemotingCommand]:
    """What the proxy was asked, once its answers have come and all that was written then is read."""
    for _ in range(2):
        await idle(5)  # tasks that may write do so
        await client.invoke(proxy.addr, HELD)
    return proxy.asked


@asynccontextmanager
async def connected(*, is_proxy: bool = True) -> AsyncIterator[tuple[Remoting, Proxy]]:
    async with Proxy().serving() as proxy:
        client = Remoting(ClientConfig(name_server="127.0.0.1:9876"))
        if is_proxy:
            client.endpoint.note_route_answer(proxy.addr, PROXY_FIELDS)
        await client.connect(proxy.addr)
        yield client, proxy
        await client.close()


@pytest.mark.parametrize("large", [PULL, BATCH, LIST], ids=["pull", "batch", "unknown-size"])
async def test_requests_with_large_answers_are_on_the_wire_one_at_a_time(large):
    async with connected() as (client, proxy):
        asking = [asyncio.ensure_future(client.invoke(proxy.addr, each)) for each in (large, large, large)]
        for count in (1, 2, 3):
            await asyncio.sleep(0)
            asked = await written(client, proxy)
            assert len(asked) == count
            await proxy.answer(asked[-1])
            await asking[count - 1]


async def test_requests_with_small_answers_wait_for_nobody():
    async with connected() as (client, proxy):
        pulling = asyncio.ensure_future(client.invoke(proxy.addr, PULL))
        asking = [asyncio.ensure_future(client.invoke(proxy.addr, SEND)) for _ in range(100)]
        await asyncio.sleep(0)
        assert len(await written(client, proxy)) == 101
        for request in proxy.asked:
            await proxy.answer(request)
        assert len({answer.remark for answer in await asyncio.gather(pulling, *asking)}) == 101


async def test_a_request_whose_turn_does_not_come_in_its_time_was_not_sent():
    async with connected() as (client, proxy):
        first = asyncio.ensure_future(client.invoke(proxy.addr, PULL, timeout=2))
        await asyncio.sleep(0)
        with pytest.raises(RemotingConnectError, match=r"took 1\.000 s: nothing was sent"):
            await client.invoke(proxy.addr, PULL, timeout=1)
        with pytest.raises(RemotingTimeoutError):
            await first
        assert len(await written(client, proxy)) == 1


async def test_the_room_of_a_cancelled_request_is_free_when_its_answer_came():
    async with connected() as (client, proxy):
        first, second, third = (asyncio.ensure_future(client.invoke(proxy.addr, PULL)) for _ in range(3))
        assert len(await written(client, proxy)) == 1
        first.cancel()
        second.cancel()
        await asyncio.wait([first, second])
        assert len(await written(client, proxy)) == 1  # the proxy will answer the first one
        await proxy.answer(proxy.asked[0])
        asked = await written(client, proxy)
        assert len(asked) == 2
        await proxy.answer(asked[1])
        await third


async def test_the_room_of_a_request_without_an_answer_is_free_after_its_time():
    async with connected() as (client, proxy):
        first = asyncio.ensure_future(client.invoke(proxy.addr, PULL, timeout=1))
        second = asyncio.ensure_future(client.invoke(proxy.addr, PULL, timeout=3))
        with pytest.raises(RemotingTimeoutError):
            await first
        asked = await written(client, proxy)
        assert len(asked) == 2
        await proxy.answer(asked[1])
        await second


async def test_a_room_is_free_again_when_no_connection_opens():
    async with connected() as (client, _):
        with pytest.raises(RemotingConnectError):
            await client.invoke("127.0.0.1:1", PULL)
        with pytest.raises(RemotingConnectError, match="cannot connect"):
            await client.invoke("127.0.0.1:1", PULL)


@pytest.mark.parametrize(("is_proxy", "depth", "on_the_wire"), [(True, 2, 1), (False, 8, 2)])
async def test_a_pipeline_has_as_many_requests_as_its_server_bears(is_proxy, depth, on_the_wire):
    async with connected(is_proxy=is_proxy) as (client, proxy):
        start, allowed = await client.pipeline(proxy.addr, 8)
        assert allowed == depth
        answers = [start(PULL, 5.0) for _ in range(2)]
        await asyncio.sleep(0)
        assert len(await written(client, proxy)) == on_the_wire
        await proxy.answer(proxy.asked[0])
        await answers[0]
        await proxy.answer((await written(client, proxy))[1])
        await answers[1]
