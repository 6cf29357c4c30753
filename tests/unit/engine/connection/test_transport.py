"""What a connection writes, and when; answers that are large or slow; requests that cannot be written."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pickle import PickleBuffer
from typing import Any

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.engine.connection.transport import Connection
from rmqtools.errors import ConnectionLostError, ProtocolError, RemotingTimeoutError
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand, decode_command, encode_command, response
from rmqtools.protocol.wire.framing import FrameDecoder
from rmqtools.protocol.wire.template import RequestTemplate
from tests.support.event_loops import on_both_loops
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.consumer.push_scene import until

ASK = RemotingCommand(28)
MIB = 1024 * 1024


class Wire(asyncio.Transport):
    """Keeps each write; takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def opaques(self) -> list[list[int]]:
        """Of the requests in each write."""
        frames = [FrameDecoder().feed(data) for data in self.writes]
        return [[decode_command(frame).opaque for frame in some] for some in frames]


async def ignore(request: RemotingCommand, addr: str) -> None: ...


def unconnected() -> Connection:
    return Connection("127.0.0.1:1", on_request=ignore, max_frame_bytes=4 * MIB)


async def connected(host: str, port: int) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(unconnected, host, port)
    return connection


def wired() -> tuple[Connection, Wire]:
    connection, wire = unconnected(), Wire()
    connection.connection_made(wire)
    return connection, wire


def arrive(connection: Connection, data: bytes) -> None:
    """Receive bytes as uvloop does, which holds the buffer meanwhile."""
    while data:
        room = connection.get_buffer(-1)
        count = min(len(room), len(data))
        room[:count], data = data[:count], data[count:]
        holder = PickleBuffer(room)
        connection.buffer_updated(count)
        holder.release()


async def test_a_request_alone_goes_out_at_once_those_behind_it_together():
    connection, wire = wired()
    for _ in range(4):
        connection.start(ASK, 5)
    assert wire.opaques() == [[1]]
    await asyncio.sleep(0)
    assert wire.opaques() == [[1], [2, 3, 4]]
    connection.connection_lost(None)


async def test_a_frame_that_begins_while_no_request_waits_makes_the_connection_unusable_until_it_is_whole():
    stray = RemotingCommand(40).encode(7)
    connection, _ = wired()
    arrive(connection, stray[:9])
    assert not connection.is_usable
    assert not connection.is_ready
    arrive(connection, stray[9:])
    assert connection.is_usable
    answer = connection.start(ASK, 5)
    arrive(connection, response(0, 1).encode(1)[:9])
    assert connection.is_usable  # the answer that is waited for
    answer.cancel()
    connection.connection_lost(None)


async def test_a_large_request_takes_those_before_it_along():
    connection, wire = wired()
    for body in (b"", b"", bytes(100_000)):
        connection.start(RemotingCommand(310, body=body), 5)
    assert wire.opaques() == [[1], [2, 3]]
    connection.connection_lost(None)


async def test_each_request_ends_at_its_own_time():
    connection, _ = wired()
    long, short = connection.start(ASK, 5), connection.start(ASK, 0.01)
    with pytest.raises(RemotingTimeoutError, match=r"within 0\.010 s"):
        await short
    assert not long.done()
    connection.connection_lost(None)
    assert long.exception() is not None


@on_both_loops
def test_a_request_whose_time_is_nearly_over_keeps_no_other_from_being_sent(new_loop):
    async def scenario() -> None:
        connection, wire = wired()
        late = connection.start(ASK, 0.0001)  # on uvloop its timer is none: it is due at once
        other = connection.start(ASK, 60.0)
        with pytest.raises(RemotingTimeoutError):
            await late
        assert not other.done()
        assert sum(len(some) for some in wire.opaques()) == 2
        connection.connection_lost(None)
        with pytest.raises(ConnectionLostError):
            await other

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())


@on_both_loops
def test_large_answers_arrive_although_nothing_comes_after_them(new_loop):
    async def sizes_of_answers(count: int) -> list[int]:
        peer = ScriptedPeer(lambda request: response(0, request.opaque, body=bytes(MIB)))
        async with peer.serving():
            host, port = peer.addr.split(":")
            connection = await connected(host, int(port))
            sizes = [len((await connection.invoke(RemotingCommand(11), 5)).body) for _ in range(count)]
            await connection.close()
        return sizes

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(sizes_of_answers(3)) == [MIB] * 3


async def test_a_complete_answer_is_taken_although_the_connection_ends_before_its_memory_is_released():
    connection, _ = wired()
    answer = connection.start(RemotingCommand(11), 5)
    arrive(connection, encode_command(response(0, 1, body=bytes(MIB))))
    connection.connection_lost(None)
    assert len((await answer).body) == MIB


@asynccontextmanager
async def dripping(size: int) -> AsyncIterator[Connection]:
    """A connection to a peer that begins a frame of 1 MB, ``size`` bytes every 0.2 seconds."""
    over = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(struct.pack(">II", 1_000_000, 100))
        with suppress(ConnectionError):
            while True:
                writer.write(bytes(size))
                await writer.drain()
                await asyncio.sleep(0.2)
        writer.close()
        over.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        connection = await connected(*server.sockets[0].getsockname())
        yield connection
        await connection.close()
        await over.wait()


async def test_an_answer_past_its_deadline_that_hardly_grows_ends_the_connection():
    async with dripping(1) as connection:
        late = connection.start(ASK, 100)
        with pytest.raises(RemotingTimeoutError):
            await connection.invoke(ASK, 1.0)
        with pytest.raises(ConnectionLostError):
            await late


async def test_a_slow_answer_that_grows_keeps_the_connection():
    async with dripping(5000) as connection:
        for _ in range(8):
            with pytest.raises(RemotingTimeoutError):
                await connection.invoke(ASK, 1.0)
        assert connection.is_usable


async def test_a_connection_whose_answers_keep_their_deadlines_is_not_judged():
    async with dripping(1) as connection:
        late = connection.start(ASK, 100)
        await asyncio.wait({late}, timeout=6.0)
        assert connection.is_usable
    assert isinstance(late.exception(), ConnectionLostError)


@asynccontextmanager
async def asking(**settings: Any) -> AsyncIterator[tuple[Remoting, ScriptedPeer]]:
    """A client of a peer that answers no pulls."""
    peer = ScriptedPeer(lambda one: None if one.code == RequestCode.PULL_MESSAGE else response(0, 0))
    async with peer.serving():
        remoting = Remoting(ClientConfig(name_server=peer.addr, **settings))
        yield remoting, peer
        await remoting.close()


HEARTBEAT = RemotingCommand(RequestCode.HEART_BEAT, {"a": "1"})


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: RemotingCommand(RequestCode.HEART_BEAT, {"topic": "\ud800"}), id="command"),
        pytest.param(
            lambda: RequestTemplate(HEARTBEAT, ("n",), text="t").fill(1, text="\ud800"), id="template"
        ),
    ],
)
async def test_a_request_that_cannot_be_written_is_not_waited_for_and_does_not_silence_the_connection(make):
    async with asking() as (remoting, peer):
        connection = await remoting.connect(peer.addr)
        for _ in range(3):
            with pytest.raises(ProtocolError, match="no Unicode"):
                await remoting.invoke(peer.addr, make(), timeout=0.25)
        assert connection._pending == {}
        with pytest.raises(RemotingTimeoutError):  # the alarm goes off: what is left behind would end, too
            await remoting.invoke(peer.addr, RemotingCommand(RequestCode.PULL_MESSAGE), timeout=0.15)
        await asyncio.sleep(0.15)
        assert connection.is_usable


async def test_credentials_that_cannot_be_written_are_a_protocol_error():
    async with asking(access_key="\ud800", secret_key="secret") as (remoting, peer):
        with pytest.raises(ProtocolError, match="no Unicode"):
            await remoting.invoke(peer.addr, HEARTBEAT)


async def test_an_answer_that_cannot_be_written_is_logged_and_the_connection_lives_on(caplog):
    async def answer(command: RemotingCommand, addr: str) -> RemotingCommand:
        return response(0, command.opaque, remark="\ud800")

    async with asking() as (remoting, peer):
        remoting.on_request(RequestCode.GET_CONSUMER_RUNNING_INFO, answer)
        connection = await remoting.connect(peer.addr)
        await peer.say(encode_command(RemotingCommand(RequestCode.GET_CONSUMER_RUNNING_INFO, opaque=7)))
        await until(lambda: "background_task_failed" in caplog.text)
        assert connection.is_usable
