import asyncio
from typing import Any

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection import transport
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

ASK = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
SETTINGS_OF_A_GRPC_SERVER = bytes.fromhex("000012040000000000") + bytes(18)
TLS_ALERT = bytes.fromhex("15030300020246")


def remoting(**settings: Any) -> Remoting:
    return Remoting(ClientConfig(name_server="127.0.0.1:9876", **settings))


def echo(request: RemotingCommand) -> RemotingCommand:
    return response(ResponseCode.SUCCESS, 0, remark=f"opaque {request.opaque}")


async def test_answers_reach_their_own_requests_in_any_order():
    held: list[RemotingCommand] = []

    def answer_when_three_are_here(request: RemotingCommand) -> bytes | None:
        held.append(request)
        if len(held) < 3:
            return None
        return b"".join(encode_command(response(0, r.opaque, remark=r.remark)) for r in reversed(held))

    async with ScriptedPeer(answer_when_three_are_here).serving() as peer:
        client = remoting()
        asks = [RemotingCommand(28, remark=text) for text in ("a", "b", "c")]
        answers = await asyncio.gather(*(client.invoke(peer.addr, ask) for ask in asks))
        await client.close()

    assert [answer.remark for answer in answers] == ["a", "b", "c"]


async def test_callers_at_the_same_time_share_one_connection():
    async with ScriptedPeer(echo).serving() as peer:
        client = remoting()
        await asyncio.gather(*(client.invoke(peer.addr, ASK) for _ in range(20)))
        assert peer.accepted == 1
        await client.close()


async def test_silence_ends_in_a_timeout_that_names_address_request_and_seconds():
    async with ScriptedPeer().serving() as peer:
        client = remoting()
        with pytest.raises(
            RemotingTimeoutError,
            match=rf"{peer.addr} did not answer GET_BROKER_RUNTIME_INFO \(28\) within 0\.\d+ s",
        ):
            await client.invoke(peer.addr, ASK, timeout=0.05)
        await client.close()


async def test_an_answer_after_its_timeout_disturbs_nothing():
    async with ScriptedPeer().serving() as peer:
        client = remoting()
        with pytest.raises(RemotingTimeoutError):
            await client.invoke(peer.addr, ASK, timeout=0.05)
        await peer.say(encode_command(response(0, peer.requests[0].opaque)))
        peer._script = echo
        assert (await client.invoke(peer.addr, ASK)).code == ResponseCode.SUCCESS
        await client.close()


async def test_a_refused_connection_is_told_from_a_lost_one():
    async with ScriptedPeer(disconnects=True).serving() as peer:
        client = remoting()
        with pytest.raises(ConnectionLostError, match=peer.addr):
            await client.invoke(peer.addr, ASK)
    with pytest.raises(RemotingConnectError, match=f"cannot connect to {peer.addr}"):
        await client.invoke(peer.addr, ASK)
    await client.close()


async def test_an_address_that_refused_twice_is_tried_again_only_after_a_pause(clock):
    async with ScriptedPeer(echo).serving() as peer:
        target = ["127.0.0.1:1"]  # nobody listens there
        config = ClientConfig(name_server="127.0.0.1:9876", broker_address_map=lambda _: target[0])
        client = Remoting(config, clock=clock)
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
        await client.close()


async def test_a_broken_connection_is_replaced():
    async with ScriptedPeer(echo).serving() as peer:
        client = remoting()
        connection = await client.connect(peer.addr)
        peer.disconnect()
        while connection.is_open:  # noqa: ASYNC110 - until the loop has seen it
            await asyncio.sleep(0)
        answer = await client.invoke(peer.addr, ASK)
        assert answer.code == ResponseCode.SUCCESS
        await client.close()


async def test_a_no_is_an_error_with_code_remark_and_address():
    async with ScriptedPeer(lambda _: response(17, 0, remark="no such topic")).serving() as peer:
        client = remoting()
        with pytest.raises(BrokerError, match=r"answered TOPIC_NOT_EXIST \(17\): no such topic") as caught:
            await client.invoke_ok(peer.addr, ASK)
        assert (caught.value.code, caught.value.addr) == (ResponseCode.TOPIC_NOT_EXIST, peer.addr)
        await client.close()


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
    async with ScriptedPeer(greeting=greeting).serving() as peer:
        client = remoting()
        with pytest.raises(ProtocolError, match=f"{peer.addr}: .*{named}"):
            await client.invoke(peer.addr, ASK)
        await client.close()


async def test_a_request_of_the_broker_is_answered_by_its_handler():
    async with ScriptedPeer(echo).serving() as peer:
        client = remoting()

        async def handle(request: RemotingCommand, addr: str) -> RemotingCommand:
            return response(ResponseCode.SUCCESS, 0, remark=f"{addr} asked {request.code}")

        client.on_request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, handle)
        await client.invoke(peer.addr, ASK)
        await peer.say(encode_command(RemotingCommand(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, opaque=77)))
        await client.invoke(peer.addr, ASK)
        answers = {request.opaque: request.remark for request in peer.requests if request.is_response}
        await client.close()

    assert answers == {77: f"{peer.addr} asked 40"}


@pytest.mark.parametrize(
    ("handled", "code"),
    [
        pytest.param(False, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, id="nobody-handles-it"),
        pytest.param(True, ResponseCode.SYSTEM_ERROR, id="the-handler-raises"),
    ],
)
async def test_a_request_that_cannot_be_handled_is_answered_too(handled: bool, code: ResponseCode):
    async with ScriptedPeer(echo).serving() as peer:
        client = remoting()

        async def fail(request: RemotingCommand, addr: str) -> RemotingCommand:
            raise RuntimeError("no")

        if handled:
            client.on_request(RequestCode.CHECK_TRANSACTION_STATE, fail)
        await client.invoke(peer.addr, ASK)
        await peer.say(encode_command(RemotingCommand(RequestCode.CHECK_TRANSACTION_STATE, opaque=5)))
        await client.invoke(peer.addr, ASK)
        answers = [request.code for request in peer.requests if request.is_response]
        await client.close()

    assert answers == [code]


async def test_a_closed_client_refuses_to_connect():
    client = remoting()
    await client.close()
    with pytest.raises(ClientStateError, match="closed"):
        await client.invoke("127.0.0.1:1", ASK)


async def test_addresses_of_the_route_are_mapped_before_connecting():
    async with ScriptedPeer(echo).serving() as peer:
        client = remoting(broker_address_map={"10.9.9.9:10911": peer.addr})
        assert (await client.invoke("10.9.9.9:10911", ASK)).code == ResponseCode.SUCCESS
        await client.close()


async def test_requests_are_signed_where_there_are_credentials():
    async with ScriptedPeer(echo).serving() as peer:
        client = remoting(access_key="alice", secret_key="secret-0001")
        await client.invoke(peer.addr, ASK)
        await client.close()

    assert peer.requests[0].ext_fields["AccessKey"] == "alice"
    assert peer.requests[0].ext_fields["Signature"]


@pytest.fixture
def short_grace(monkeypatch):
    monkeypatch.setattr(transport, "_CLOSE_GRACE", 0.05)


LARGE = RemotingCommand(RequestCode.SEND_MESSAGE_V2, body=bytes(8 * 1024 * 1024))


async def test_closing_does_not_wait_for_a_peer_that_takes_no_bytes(short_grace):
    async with ScriptedPeer(reads=False).serving() as peer:
        client = remoting()
        with pytest.raises(RemotingTimeoutError):
            await client.invoke(peer.addr, LARGE, timeout=0.05)
        await asyncio.wait_for(client.close(), 5)


async def test_a_request_that_could_not_be_written_is_told_from_one_without_an_answer(short_grace):
    async with ScriptedPeer(reads=False).serving() as peer:
        client = remoting()
        with pytest.raises(RemotingTimeoutError):
            await client.invoke(peer.addr, LARGE, timeout=0.05)
        with pytest.raises(RemotingConnectError, match=r"took no bytes for 0\.0\d+ s: nothing was sent"):
            await client.invoke(peer.addr, ASK, timeout=0.05)
        await client.close()


async def test_one_way_commands_wait_for_a_peer_that_takes_no_bytes(short_grace):
    async with ScriptedPeer(reads=False).serving() as peer:
        client = remoting()
        await client.invoke_oneway(peer.addr, LARGE, timeout=1)
        with pytest.raises(RemotingConnectError, match="took no bytes"):
            await client.invoke_oneway(peer.addr, LARGE, timeout=0.05)
        await client.close()


async def test_a_connection_on_which_nothing_comes_any_more_is_replaced_by_a_new_one():
    async with ScriptedPeer().serving() as peer:
        client = remoting()
        with pytest.raises(RemotingTimeoutError):
            await client.invoke(peer.addr, ASK, timeout=0.25)
        peer._script = echo
        assert (await client.invoke(peer.addr, ASK, timeout=2)).code == ResponseCode.SUCCESS
        assert peer.accepted == 2
        await client.close()


async def test_a_connection_that_is_only_slow_is_kept():
    held: list[RemotingCommand] = []
    first = asyncio.Event()

    def answer_the_second(request: RemotingCommand) -> RemotingCommand | None:
        held.append(request)
        first.set()
        return response(0, 0) if len(held) > 1 else None

    async with ScriptedPeer(answer_the_second).serving() as peer:
        client = remoting()
        slow = asyncio.ensure_future(client.invoke(peer.addr, ASK, timeout=0.25))
        await first.wait()
        await client.invoke(peer.addr, ASK)
        with pytest.raises(RemotingTimeoutError):
            await slow
        await client.invoke(peer.addr, ASK)
        assert peer.accepted == 1
        await client.close()


async def test_closing_tells_those_who_wait_for_a_connection(monkeypatch):
    begun = asyncio.Event()

    async def never(*arguments: object, **named: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    client = remoting()
    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", never)
    waiting = asyncio.ensure_future(client.invoke("127.0.0.1:1", ASK))
    await begun.wait()
    await client.close()
    with pytest.raises(ClientStateError, match="closed meanwhile"):
        await waiting


async def test_a_connection_that_is_never_made_is_given_up_and_tried_afresh(monkeypatch):
    tries: list[object] = []

    async def never(*arguments: object, **named: object) -> None:
        tries.append(arguments)
        await asyncio.Event().wait()

    client = remoting(connect_timeout=0.05)
    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", never)
    for _ in range(2):
        with pytest.raises(RemotingConnectError, match=r"connect: no answer within 0\.05"):
            await client.invoke("127.0.0.1:1", ASK)
        await asyncio.gather(*client._connecting._tasks.values(), return_exceptions=True)
    assert len(tries) == 2
    await client.close()
