import asyncio
import contextlib
import socket

import pytest

from rmqtools.protocol.wire.command import response
from rmqtools.testing.fake.server import Server


async def ask(server: Server, data: bytes) -> bytes:
    """Everything a server says to these bytes until the connection ends."""
    host, _, port = server.addr.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    writer.write_eof()
    said = b""
    with contextlib.suppress(ConnectionResetError):
        said = await reader.read()
    writer.close()
    return said


async def test_bytes_that_are_no_frame_break_the_connection() -> None:
    async with Server(lambda *_: response(0, 0)).serving() as server:
        assert await ask(server, b"\xff" * 20) == b""
        assert not server.peers


@pytest.mark.parametrize("iterations", range(6))
def test_a_connection_that_is_just_being_accepted_ends_with_the_server(iterations: int) -> None:
    async def connected() -> socket.socket:
        server = Server(lambda *_: None)
        server.start()
        host, _, port = server.addr.partition(":")
        client = socket.create_connection((host, int(port)))
        for _ in range(iterations):
            await asyncio.sleep(0)
        await server.close()
        return client

    with asyncio.run(connected()) as client, contextlib.suppress(ConnectionResetError):
        client.settimeout(60)
        assert client.recv(1) == b""


async def test_after_it_is_closed_nobody_connects() -> None:
    async with Server(lambda *_: None).serving() as server:
        await ask(server, b"")
    with pytest.raises(ConnectionRefusedError):
        await ask(server, b"")


async def test_a_block_that_ends_at_once_listens_no_more() -> None:
    async with Server(lambda *_: None).serving() as server:
        pass
    with pytest.raises(ConnectionRefusedError):
        await ask(server, b"")
