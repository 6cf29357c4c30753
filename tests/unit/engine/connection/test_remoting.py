import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config import ClientConfig
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import (
    BrokerError,
    ClientStateError,
    ConnectionLostError,
    ProtocolError,
    RemotingConnectError,
    RemotingTimeoutError,
)
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, response
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.consumer.push_scene import until

ASK = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
LARGE = RemotingCommand(RequestCode.SEND_MESSAGE_V2, body=bytes(8 * 1024 * 1024))
SETTINGS_OF_A_GRPC_SERVER = bytes.fromhex("000012040000000000") + bytes(18)
TLS_ALERT = bytes.fromhex("15030300020246")


def echo(request: RemotingCommand) -> RemotingCommand:
    return response(ResponseCode.SUCCESS, 0, remark=f"opaque {request.opaque}")


def answering_after(silences: int) -> ScriptedPeer:
    """A peer that does not answer its first requests."""
    seen: list[RemotingCommand] = []

    def answer(request: RemotingCommand) -> RemotingCommand | None:
        seen.append(request)
        return echo(request) if len(seen) > silences else None

    return ScriptedPeer(answer)


@asynccontextmanager
async def asking(
    peer: ScriptedPeer | None = None, clock: Clock = SYSTEM_CLOCK, **settings: Any
) -> AsyncIterator[tuple[Remoting, ScriptedPeer]]:
    """A client, and the peer that listens meanwhile."""
    async with (peer or ScriptedPeer()).serving() as peer:
        client = Remoting(ClientConfig(name_server="127.0.0.1:9876", **settings), clock=clock)
        yield client, peer
        await client.close()


async def test_answers_reach_their_own_requests_in_any_order_on_one_connection():
    held: list[RemotingCommand] = []

    def answer_when_three_are_here(request: RemotingCommand) -> bytes | None:
        held.append(request)
        if len(held) < 3:
            return None
        return b"".join(encode_command(response(0, r.opaque, remark=r.remark)) for r in reversed(held))

    async with asking(ScriptedPeer(answer_when_three_are_here)) as (client, peer):
        asks = [RemotingCommand(28, remark=text) for text in ("a", "b", "c")]
        answers = await asyncio.gather(*(client.invoke(peer.addr, ask) for ask in asks))

    assert [answer.remark for answer in answers] == ["a", "b", "c"]
    assert peer.accepted == 1


async def test_an_answer_after_its_timeout_disturbs_nothing():
    async with asking(answering_after(1)) as (client, peer):
        with pytest.raises(RemotingTimeoutError):
            await client.invoke(peer.addr, ASK, timeout=0.05)
        await peer.say(encode_command(response(0, peer.requests[0].opaque)))
        assert (await client.invoke(peer.addr, ASK)).code == ResponseCode.SUCCESS


async def test_a_refused_connection_is_told_from_a_lost_one():
    peer = ScriptedPeer(disconnects=True)
    async with asking() as (client, _):
        async with peer.serving():
            with pytest.raises(ConnectionLostError, match=peer.addr):
                await client.invoke(peer.addr, ASK)
        with pytest.raises(RemotingConnectError, match=f"cannot connect to {peer.addr}"):
            await client.invoke(peer.addr, ASK)


async def test_an_address_that_refused_twice_is_tried_again_only_after_a_pause(clock):
    target = ["127.0.0.1:1"]  # nobody listens there
    async with asking(ScriptedPeer(echo), clock, broker_address_map=lambda _: target[0]) as (client, peer):
        for _ in range(2):
            with pytest.raises(RemotingConnectError, match="Connect call failed"):
                await client.invoke("broker:1", ASK)
        target[0] = peer.addr
        with pytest.raises(RemotingConnectError, match="Connect call failed"):
            await client.invoke("broker:1", ASK)
        assert peer.accepted == 0
        clock.advance(0.05)
        await client.invoke("broker:1", ASK)
        assert peer.accepted == 1


async def test_a_no_is_an_error_with_code_remark_and_address():
    async with asking(ScriptedPeer(lambda _: response(17, 0, remark="no such topic"))) as (client, peer):
        with pytest.raises(BrokerError, match=r"answered TOPIC_NOT_EXIST \(17\): no such topic") as caught:
            await client.invoke_ok(peer.addr, ASK)
    assert (caught.value.code, caught.value.addr) == (ResponseCode.TOPIC_NOT_EXIST, peer.addr)


@pytest.mark.parametrize(
    ("greeting", "named"),
    [
        pytest.param(SETTINGS_OF_A_GRPC_SERVER, "HTTP/2", id="grpc"),
        pytest.param(TLS_ALERT, "TLS", id="tls"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1", id="http"),
        pytest.param(b"\xff" * 64, "impossible frame", id="garbage"),
    ],
)
async def test_another_protocol_on_the_port_is_named_at_once(greeting: bytes, named: str):
    async with asking(ScriptedPeer(greeting=greeting)) as (client, peer):
        with pytest.raises(ProtocolError, match=f"{peer.addr}: .*{named}"):
            await client.invoke(peer.addr, ASK)


async def greet(request: RemotingCommand, addr: str) -> RemotingCommand:
    return response(ResponseCode.SUCCESS, 0, remark=f"{addr} asked {request.code}")


async def fail(request: RemotingCommand, addr: str) -> RemotingCommand:
    raise RuntimeError("no")


@pytest.mark.parametrize(
    ("handlers", "code", "remark"),
    [
        ([greet], ResponseCode.SUCCESS, "{addr} asked 39"),
        ([], ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "request type 39 not supported"),
        ([fail], ResponseCode.SYSTEM_ERROR, "RuntimeError('no')"),
    ],
    ids=["handled", "nobody-handles-it", "the-handler-raises"],
)
async def test_each_request_of_a_broker_is_answered(handlers, code, remark):
    async with asking(ScriptedPeer(echo)) as (client, peer):
        for handler in handlers:
            client.on_request(RequestCode.CHECK_TRANSACTION_STATE, handler)
        await client.invoke(peer.addr, ASK)
        await peer.say(encode_command(RemotingCommand(RequestCode.CHECK_TRANSACTION_STATE, opaque=77)))
        await client.invoke(peer.addr, ASK)

    (answer,) = [request for request in peer.requests if request.is_response]
    assert (answer.opaque, answer.code) == (77, code)
    assert answer.remark == remark.format(addr=peer.addr)


async def test_a_peer_that_takes_no_bytes_is_told_from_one_that_does_not_answer_and_delays_no_closing():
    async with asking(ScriptedPeer(reads=False)) as (client, peer):
        with pytest.raises(RemotingTimeoutError):
            await client.invoke(peer.addr, LARGE, timeout=0.05)
        with pytest.raises(RemotingConnectError, match=r"took no bytes for 0\.0\d+ s: nothing was sent"):
            await client.invoke(peer.addr, ASK, timeout=0.05)
        await asyncio.wait_for(client.close(), 5)


async def test_one_way_commands_wait_for_a_peer_that_takes_no_bytes():
    async with asking(ScriptedPeer(reads=False)) as (client, peer):
        await client.invoke_oneway(peer.addr, LARGE, timeout=1)
        with pytest.raises(RemotingConnectError, match="took no bytes"):
            await client.invoke_oneway(peer.addr, LARGE, timeout=0.05)


async def test_a_connection_on_which_nothing_comes_any_more_is_replaced_by_a_new_one():
    async with asking(answering_after(1)) as (client, peer):
        with pytest.raises(RemotingTimeoutError):
            await client.invoke(peer.addr, ASK, timeout=0.25)
        assert (await client.invoke(peer.addr, ASK, timeout=2)).code == ResponseCode.SUCCESS
    assert peer.accepted == 2


async def test_a_connection_that_is_only_slow_is_kept():
    async with asking(answering_after(1)) as (client, peer):
        slow = asyncio.ensure_future(client.invoke(peer.addr, ASK, timeout=0.25))
        await until(lambda: peer.requests)
        await client.invoke(peer.addr, ASK)
        with pytest.raises(RemotingTimeoutError):
            await slow
        await client.invoke(peer.addr, ASK)
    assert peer.accepted == 1


@pytest.fixture
def connects(monkeypatch) -> list[object]:
    """The attempts to connect, of which none ends."""
    attempts: list[object] = []

    async def never(*arguments: object) -> None:
        attempts.append(arguments)
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", never)
    return attempts


async def test_closing_tells_those_who_wait_for_a_connection_and_those_who_ask_later(connects):
    async with asking() as (client, _):
        waiting = asyncio.ensure_future(client.invoke("127.0.0.1:1", ASK))
        await until(lambda: connects)
        await client.close()
        with pytest.raises(ClientStateError, match="closed meanwhile"):
            await waiting
        with pytest.raises(ClientStateError, match="is closed"):
            await client.invoke("127.0.0.1:1", ASK)


async def test_a_connection_that_is_never_made_is_given_up_and_tried_afresh(connects):
    async with asking(connect_timeout=0.05) as (client, _):
        for _ in range(2):
            with pytest.raises(RemotingConnectError, match=r"connect: no answer within 0\.05"):
                await client.invoke("127.0.0.1:1", ASK)
            await asyncio.sleep(0.05)
    assert len(connects) == 2
