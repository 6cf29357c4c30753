"""A connection that cannot be opened: which of look-up, connect and TLS handshake failed."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import RemotingConnectError

GONE = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


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
    remoting = Remoting(ClientConfig(name_server="127.0.0.1:1", connect_timeout=0.2, **settings))
    with pytest.raises(RemotingConnectError) as caught:
        await remoting.connect(addr)
    await remoting.close()
    return str(caught.value)


async def test_a_name_that_nobody_knows_is_a_failed_look_up(monkeypatch):
    async def unknown(*_, **__):
        raise GONE

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)

    assert "cannot connect to broker:10911: name look-up failed: [Errno -2] Name or" in await failure(
        "broker:10911"
    )


async def test_a_name_server_of_names_that_does_not_answer_is_a_look_up_without_an_answer(monkeypatch):
    async def never(*_, **__):
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", never)

    assert "name look-up: no answer within 0.200 s" in await failure("broker:10911")


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
    async with listening() as gone, listening() as addr:
        ports = [int(each.rpartition(":")[2]) for each in (gone, addr)]

        async def two(*_, **__):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two)
        ports[0] = 1  # nobody listens there
        remoting = Remoting(ClientConfig(name_server="127.0.0.1:1"))
        connection = await remoting.connect("broker:10911")
        assert connection.peer == ("127.0.0.1", ports[1])
        await remoting.close()
        ports[1] = 2

        text = await failure("broker:10911")

    assert "('127.0.0.1', 1); " in text
    assert "('127.0.0.1', 2)" in text


async def test_requests_are_not_held_back_for_more_bytes():
    async with listening() as addr:
        remoting = Remoting(ClientConfig(name_server="127.0.0.1:1"))
        connection = await remoting.connect(addr)
        sock = connection._transport.get_extra_info("socket")  # type: ignore[union-attr]

        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        await remoting.close()
