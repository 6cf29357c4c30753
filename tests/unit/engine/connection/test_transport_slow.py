"""An answer that comes byte by byte, and one that comes slowly."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from rmqtools.engine.connection import transport
from rmqtools.engine.connection.transport import Connection
from rmqtools.errors import ConnectionLostError, RemotingTimeoutError
from rmqtools.protocol.wire.command import RemotingCommand


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_SLOW_SECONDS", 0.3)


@asynccontextmanager
async def connected(pace: float, size: int) -> AsyncIterator[Connection]:
    """A connection to a peer that begins a frame of 1 MB, ``size`` bytes every ``pace`` seconds."""
    over = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(struct.pack(">II", 1_000_000, 100))
        with suppress(ConnectionError):
            while True:
                writer.write(bytes(size))
                await writer.drain()
                await asyncio.sleep(pace)
        writer.close()
        over.set()

    async def ignore(*_: object) -> None:
        return None

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: Connection(f"{host}:{port}", on_request=ignore, max_frame_bytes=1 << 24), host, port
    )
    try:
        yield connection
    finally:
        await connection.close()
        await over.wait()
        server.close()
        await server.wait_closed()


async def test_an_answer_past_its_deadline_that_hardly_grows_ends_the_connection():
    async with connected(0.02, 1) as connection:
        late = connection.start(RemotingCommand(1), 10)
        with pytest.raises(RemotingTimeoutError):
            await connection.invoke(RemotingCommand(1), 0.1)
        with pytest.raises(ConnectionLostError):
            await late


async def test_a_slow_answer_that_grows_keeps_the_connection():
    async with connected(0.02, 500) as connection:
        for _ in range(8):
            with pytest.raises(RemotingTimeoutError):
                await connection.invoke(RemotingCommand(1), 0.1)
        assert connection.is_usable


async def test_a_connection_whose_answers_keep_their_deadlines_is_not_judged():
    async with connected(0.02, 1) as connection:
        late = connection.start(RemotingCommand(1), 10)
        await asyncio.wait({late}, timeout=0.6)
        assert connection.is_usable
    assert isinstance(late.exception(), ConnectionLostError)
