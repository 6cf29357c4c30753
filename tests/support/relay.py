"""A TCP relay that can be cut, as a network that is partitioned; or one that accepts TLS only."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from rmqtools.sync.loop import Bridge


class Relay:
    """Passes bytes on to one address. Used on the loop of a test.

    Args:
        addr: where they go.
        context: of TLS, which its clients must use then.

    Attributes:
        accepted: connections so far.

    A connection that its client resets while the relay is cut never delivers what it had not passed on.
    """

    def __init__(self, addr: str, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self._host, _, port = addr.rpartition(":")
        self._port = int(port)
        self._passes = asyncio.Event()
        self._passes.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.accepted = 0

    @property
    def addr(self) -> str:
        """``host:port`` of the relay."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    def cut(self) -> None:
        """Stop passing bytes on."""
        self._passes.clear()

    def heal(self) -> None:
        """Pass on what waits, and what follows."""
        self._passes.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._context)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        with suppress(asyncio.CancelledError):  # at the end; a stream's task may not be cancelled
            await self._pass(reader, writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._passes.wait()
        try:
            there, back = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.transport.abort()
            return
        pumps = [asyncio.create_task(self._pump(*pair)) for pair in ((reader, back), (there, writer))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for end in (back, writer):
                end.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self._passes.wait()
                if reader.exception() is not None:
                    return
                writer.write(data)
                await writer.drain()


class TlsProxy(Relay):
    """A relay for a blocking test: like a server that accepts TLS only."""

    @contextmanager
    def serving(self) -> Iterator[Self]:
        """Run it beside the block, on the loop of all blocking clients."""
        bridge = Bridge()
        bridge.run(self.__aenter__)
        try:
            yield self
        finally:
            bridge.run(self.__aexit__)
