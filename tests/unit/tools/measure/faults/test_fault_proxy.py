"""The fault proxy does each fault to bytes on their way, and passes them on unchanged without."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tools.measure.faults.fault_proxy import FaultProxy


@asynccontextmanager
async def echoing():
    """A proxy in front of a server that sends everything back; and a client's connection through it."""

    async def echo(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with server, FaultProxy(f"{host}:{port}") as proxy:
        reader, writer = await asyncio.open_connection(*proxy.addr.split(":"))
        yield proxy, reader, writer
        writer.close()


async def test_without_a_fault_everything_passes_unchanged():
    body = bytes(range(256)) * 2000

    async with echoing() as (proxy, reader, writer):
        writer.write(body)
        assert await reader.readexactly(len(body)) == body
        assert proxy.connects == 1


async def test_a_delay_applies_to_each_direction():
    async with echoing() as (proxy, reader, writer):
        now = asyncio.get_running_loop().time
        proxy.delay = 0.05
        began = now()
        writer.write(b"x")
        await reader.readexactly(1)
        assert now() - began >= 0.1


async def test_a_slow_link_passes_so_many_bytes_a_second():
    async with echoing() as (proxy, reader, writer):
        now = asyncio.get_running_loop().time
        proxy.bytes_per_second = 40_000.0
        began = now()
        writer.write(bytes(8_192))
        await reader.readexactly(8_192)
        assert now() - began >= 0.15


@pytest.mark.parametrize("direction", ["drop_requests", "drop_replies"])
async def test_dropped_bytes_never_arrive(direction):
    async with echoing() as (proxy, reader, writer):
        setattr(proxy, direction, True)
        writer.write(b"lost")
        while proxy.dropped < 4:  # noqa: ASYNC110 - a count, and soon
            await asyncio.sleep(0)
        proxy.heal()
        writer.write(b"kept")
        assert await reader.readexactly(4) == b"kept"


async def test_an_answer_is_cut_after_so_many_bytes_and_the_connection_reset():
    async with echoing() as (proxy, reader, writer):
        proxy.cut_after = 30
        writer.write(bytes(100))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)) as caught:
            await reader.readexactly(100)
        assert len(getattr(caught.value, "partial", b"")) <= 30


async def test_a_pause_holds_everything_back_until_it_ends():
    async with echoing() as (proxy, reader, writer):
        proxy.pause()
        writer.write(b"late")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await reader.read(1)
        proxy.resume()
        assert await reader.readexactly(4) == b"late"


async def test_a_reset_ends_the_connections_of_now():
    async with echoing() as (proxy, reader, writer):
        writer.write(b"x")
        await reader.readexactly(1)
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)


async def test_a_server_that_is_away_ends_the_connection():
    async with FaultProxy("127.0.0.1:1") as proxy:
        reader, writer = await asyncio.open_connection(*proxy.addr.split(":"))
        assert await reader.read() == b""
        writer.close()
