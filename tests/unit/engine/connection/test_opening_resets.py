"""The connection of an exact appender: what its peer has not read is dropped when it ends."""

import asyncio
import socket

import pytest

from rmqtools.engine.connection.opening import Opening

SENT = b"x" * 8_000_000


def listening() -> socket.socket:
    """A server that accepts connections and reads little, like a broker that stands still."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    server.bind(("127.0.0.1", 0))
    server.listen()
    return server


def read_all(peer: socket.socket) -> int:
    """Read to the end; return how many bytes came."""
    peer.settimeout(30)
    count = 0
    while data := peer.recv(65536):
        count += len(data)
    return count


async def sent_and_closed(server: socket.socket, *, resets: bool) -> socket.socket:
    """Send more than the peer reads, close, and return the peer's end."""
    made: list[asyncio.BaseTransport] = []

    class Sender(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)

    host, port = server.getsockname()
    await Opening().open(host, port, Sender, resets=resets)
    peer, _ = server.accept()
    transport = made[0]
    assert isinstance(transport, asyncio.WriteTransport)
    transport.write(SENT)
    transport.abort()  # the kernel has a part of it in its buffer, as after the end of the process
    await asyncio.sleep(0)
    return peer


async def test_a_connection_that_resets_drops_what_is_in_the_kernels_buffer():
    with (
        listening() as server,
        await sent_and_closed(server, resets=True) as peer,
        pytest.raises(ConnectionResetError),
    ):
        await asyncio.to_thread(read_all, peer)


async def test_an_ordinary_connection_delivers_what_is_in_the_kernels_buffer():
    with listening() as server, await sent_and_closed(server, resets=False) as peer:
        assert await asyncio.to_thread(read_all, peer) > 4096
