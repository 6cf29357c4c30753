"""Requests that cannot be written: nothing of them may stay behind on the connection."""

import asyncio

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import ProtocolError, RemotingTimeoutError
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, response
from rmqtools.protocol.wire.template import RequestTemplate
from tests.support.scripted_peer import ScriptedPeer
from tests.support.scripted_transactions import until

LONE = {"topic": "\ud800"}
UNWRITABLE = [
    pytest.param(lambda: RemotingCommand(RequestCode.HEART_BEAT, LONE), id="command"),
    pytest.param(
        lambda: RequestTemplate(RemotingCommand(RequestCode.HEART_BEAT, {"a": "1"}), ("n",), text="t").fill(
            1, text="\ud800"
        ),
        id="template",
    ),
]


def answers(command: RemotingCommand) -> RemotingCommand | None:
    return None if command.code == RequestCode.PULL_MESSAGE else response(0, 0)


@pytest.mark.parametrize("make", UNWRITABLE)
async def test_a_request_that_cannot_be_written_is_not_waited_for_and_does_not_silence_the_connection(make):
    async with ScriptedPeer(answers).serving() as peer:
        remoting = Remoting(ClientConfig(name_server=peer.addr))
        connection = await remoting.connect(peer.addr)
        for _ in range(3):
            with pytest.raises(ProtocolError, match="no Unicode"):
                await remoting.invoke(peer.addr, make(), timeout=0.25)
        assert connection._pending == {}
        with pytest.raises(RemotingTimeoutError):  # the alarm goes off: what is left behind would end, too
            await remoting.invoke(peer.addr, RemotingCommand(RequestCode.PULL_MESSAGE), timeout=0.15)
        await asyncio.sleep(0.15)
        assert connection.is_usable
        await remoting.close()


async def test_credentials_that_cannot_be_written_are_a_protocol_error():
    async with ScriptedPeer(answers).serving() as peer:
        config = ClientConfig(name_server=peer.addr, access_key="\ud800", secret_key="secret")
        remoting = Remoting(config)
        with pytest.raises(ProtocolError, match="no Unicode"):
            await remoting.invoke(peer.addr, RemotingCommand(RequestCode.HEART_BEAT))
        await remoting.close()


async def test_an_answer_that_cannot_be_written_is_logged_and_the_connection_lives_on(caplog):
    async with ScriptedPeer(answers).serving() as peer:
        remoting = Remoting(ClientConfig(name_server=peer.addr))

        async def answer(command: RemotingCommand, addr: str) -> RemotingCommand:
            return response(0, command.opaque, remark="\ud800")

        remoting.on_request(RequestCode.GET_CONSUMER_RUNNING_INFO, answer)
        connection = await remoting.connect(peer.addr)
        await peer.say(encode_command(RemotingCommand(RequestCode.GET_CONSUMER_RUNNING_INFO, opaque=7)))
        await until(lambda: "background_task_failed" in caplog.text)
        assert connection.is_usable
        await remoting.close()
