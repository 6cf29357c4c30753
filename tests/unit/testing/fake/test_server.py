import asyncio
import contextlib
import gc
import socket
import warnings

import pytest

from rmqtools.protocol.wire.command import RemotingCommand, encode_command, response
from rmqtools.testing.fake.server import Server
from tests.support.scripted_peer import run


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


def test_bytes_that_are_no_frame_break_the_connection() -> None:
    async def scenario() -> None:
        async with Server(lambda *_: response(0, 0)).serving() as server:
            assert await ask(server, b"\xff" * 20) == b""
            assert not server.peers

    run(scenario)


def test_a_oneway_request_gets_no_answer() -> None:
    async def scenario() -> None:
        async with Server(lambda *_: response(0, 0)).serving() as server:
            assert await ask(server, encode_command(RemotingCommand(1, flag=2))) == b""
            assert await ask(server, encode_command(RemotingCommand(1))) != b""

    run(scenario)


def test_after_it_is_closed_nobody_connects() -> None:
    async def scenario() -> None:
        async with Server(lambda *_: None).serving() as server:
            await ask(server, b"")
        with pytest.raises(ConnectionRefusedError):
            await ask(server, b"")

    run(scenario)


def test_a_block_that_ends_at_once_listens_no_more() -> None:
    async def scenario() -> None:
        async with Server(lambda *_: None).serving() as server:
            pass
        with pytest.raises(ConnectionRefusedError):
            await ask(server, b"")

    run(scenario)


@pytest.mark.parametrize("iterations", range(6))
def test_a_connection_that_is_accepted_while_the_server_closes_is_closed_too(iterations):
    async def main() -> None:
        server = Server(lambda request, peer: None)
        server.start()
        await asyncio.sleep(0)
        await server._opening
        with socket.create_connection(tuple(server.addr.split(":"))) as client:
            for _ in range(iterations):
                await asyncio.sleep(0)
            await server.close()
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
