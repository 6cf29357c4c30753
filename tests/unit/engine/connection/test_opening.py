"""How a connection opens: which of look-up, connect and TLS handshake failed; its socket's options."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.opening import Opening
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import RemotingConnectError


@asynccontextmanager
async def listening(*, answer: bytes | None = None) -> AsyncIterator[str]:
    """A port that takes connections and answers once with bytes, with a close (b"") or not at all (None)."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is None:
            await reader.read()
        else:
            await reader.read(1)
            writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def failure(addr: str, **settings) -> str:
    """The error of an address to which no connection can be made."""
    remoting = Remoting(ClientConfig(name_server="127.0.0.1:1", connect_timeout=0.2, **settings))
    with pytest.raises(RemotingConnectError) as caught:
        await remoting.connect(addr)
    await remoting.close()
    return str(caught.value)


async def unknown(*_: object, **__: object) -> None:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def never(*_: object, **__: object) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("look_up", "text"),
    [
        pytest.param(unknown, "name look-up failed: [Errno -2] Name or", id="unknown"),
        pytest.param(never, "name look-up: no answer within 0.200 s", id="no-answer"),
    ],
)
async def test_a_name_without_an_address_is_a_failed_look_up(look_up, text, monkeypatch):
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)

    assert f"cannot connect to broker:10911: {text}" in await failure("broker:10911")


async def test_a_closed_port_is_a_failed_connect():
    async with listening() as addr:
        pass

    assert f"cannot connect to {addr}: connect failed: [Errno 111]" in await failure(addr, tls_enable=True)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(None, "TLS handshake: no answer within 0.200 s", id="silence"),
        pytest.param(b"", "TLS handshake failed: the server closed the connection", id="a close"),
        pytest.param(b"\0\0\0\x08hello\r\n", "TLS handshake failed: ", id="no TLS"),
    ],
)
async def test_a_port_that_does_not_speak_tls_is_a_failed_handshake(answer, text):
    async with listening(answer=answer) as addr:
        assert text in await failure(addr, tls_enable=True)


async def test_the_next_address_of_a_name_is_tried_and_all_failures_are_named(monkeypatch):
    async with listening() as addr:
        ports = [1, int(addr.rpartition(":")[2])]  # nobody listens at the first

        async def two(*_, **__):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two)
        remoting = Remoting(ClientConfig(name_server="127.0.0.1:1"))
        connection = await remoting.connect("broker:10911")
        assert connection.peer == ("127.0.0.1", ports[1])
        await remoting.close()
        ports[1] = 2
        text = await failure("broker:10911")

    assert "('127.0.0.1', 1); " in text
    assert "('127.0.0.1', 2)" in text


def slow_reader() -> socket.socket:
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


class Sender(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)


async def opened(server: socket.socket, *, resets: bool = False) -> asyncio.Transport:
    host, port = server.getsockname()
    return (await Opening().open(host, port, Sender, resets=resets)).transport


async def sent_and_closed(server: socket.socket, *, resets: bool) -> socket.socket:
    """Send more than the peer reads, close, and return the peer's end."""
    transport = await opened(server, resets=resets)
    peer, _ = server.accept()
    transport.write(b"x" * 8_000_000)
    transport.abort()  # the kernel has a part of it in its buffer, as after the end of the process
    await asyncio.sleep(0)
    return peer


async def test_a_connection_that_resets_drops_what_is_in_the_kernels_buffer():
    with (
        slow_reader() as server,
        await sent_and_closed(server, resets=True) as peer,
        pytest.raises(ConnectionResetError),
    ):
        await asyncio.to_thread(read_all, peer)


async def test_an_ordinary_connection_delivers_what_is_in_the_kernels_buffer():
    with slow_reader() as server, await sent_and_closed(server, resets=False) as peer:
        assert await asyncio.to_thread(read_all, peer) > 4096


async def test_requests_are_not_held_back_for_more_bytes():
    with slow_reader() as server:
        transport = await opened(server)
        assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        transport.abort()
        await asyncio.sleep(0)
