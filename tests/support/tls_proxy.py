"""A TLS proxy for a plain server, like a broker that accepts TLS only."""

import asyncio
import contextlib
import ssl
from collections.abc import Iterator

from rmqtools.sync.loop import Bridge


class TlsProxy:
    """Listens with TLS on a free loopback port and passes everything on to ``target`` in plain."""

    def __init__(self, target: str, context: ssl.SSLContext) -> None:
        self._host, self._port = target.rsplit(":", 1)
        self._context = context
        self._pumps: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.addr = ""

    @contextlib.contextmanager
    def serving(self) -> Iterator["TlsProxy"]:
        bridge = Bridge()
        bridge.submit(self._start).result(10)
        try:
            yield self
        finally:
            bridge.submit(self._stop).result(10)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        host, port = self._server.sockets[0].getsockname()
        self.addr = f"{host}:{port}"

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for pump in list(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_target = await asyncio.open_connection(self._host, int(self._port))
        for source, sink in ((reader, to_target[1]), (to_target[0], writer)):
            pump = asyncio.create_task(_pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
    finally:
        sink.close()
