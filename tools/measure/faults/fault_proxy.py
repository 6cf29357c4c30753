"""A TCP proxy between clients and a server that delays, drops, cuts, pauses, slows and resets; needs no root.

Clients reach it by ``broker_address_map``, or as a name server. All calls are on the loop that started it.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Coroutine
from types import TracebackType
from typing import Self

_CHUNK = 65536
_HELD = 256  # chunks that wait for their time
_SLOW_PIECE = 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with 0 seconds: close sends RST


class _CutError(Exception):
    """The answers have reached ``cut_after``."""


class FaultProxy:
    """Listens on a free loopback port and passes everything on to ``target``; the attributes are the faults.

    Attributes:
        addr: where it listens, ``host:port``; valid once started.
        connects: connections that clients have made so far.
        delay: seconds until a chunk is passed on, in each direction.
        bytes_per_second: of each direction of each connection; None: as fast as it goes.
        drop_requests, drop_replies: whether bytes to, or from, the server are thrown away.
        refuse: whether new connections are reset at once.
        dropped: how many bytes were thrown away.
        cut_after: of each connection, the bytes of answers that pass before both sides are reset; None: all.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.addr = ""
        self.connects = 0
        self.delay = 0.0
        self.bytes_per_second: float | None = None
        self.drop_requests = False
        self.drop_replies = False
        self.dropped = 0
        self.cut_after: int | None = None
        self.refuse = False
        self._may_pass = asyncio.Event()
        self._may_pass.set()
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], tuple[asyncio.StreamWriter, ...]] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.addr = f"{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.reset()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def pause(self) -> None:
        """Pass nothing on; connections stay open, and new ones are accepted."""
        self._may_pass.clear()

    def resume(self) -> None:
        """End a :meth:`pause`: what was held back is passed on."""
        self._may_pass.set()

    def heal(self) -> None:
        """End all faults."""
        self.delay, self.bytes_per_second, self.cut_after = 0.0, None, None
        self.drop_requests = self.drop_replies = self.refuse = False
        self.resume()

    def reset(self) -> None:
        """Reset all connections of now, on both sides."""
        for writers in self._connections.values():
            for writer in writers:
                _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connects += 1
        if self.refuse:
            return _reset(writer)
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = (writer,)
        try:
            host, port = self.target.rsplit(":", 1)
            answers, requests = await asyncio.open_connection(host, int(port))
            self._connections[task] = (writer, requests)
            await _first_to_end(
                self._pass(reader, requests, is_reply=False), self._pass(answers, writer, is_reply=True)
            )
        except _CutError:
            for one in self._connections[task]:
                _reset(one)
        except (OSError, asyncio.CancelledError):  # cancelled by __aexit__ only
            return None
        finally:
            for one in self._connections.pop(task):
                one.close()

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_reply: bool
    ) -> None:
        """Read at once and write ``delay`` later, so that a delay costs no throughput."""
        held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_HELD)
        await _first_to_end(_read(source, held), self._write_all(held, sink, is_reply=is_reply))

    async def _write_all(
        self, held: "asyncio.Queue[tuple[float, bytes]]", sink: asyncio.StreamWriter, *, is_reply: bool
    ) -> None:
        passed, now = 0, asyncio.get_running_loop().time
        while True:
            came_at, data = await held.get()
            await asyncio.sleep(max(0.0, came_at + self.delay - now()))
            await self._may_pass.wait()
            if not data:
                return
            if self.drop_replies if is_reply else self.drop_requests:
                self.dropped += len(data)
                continue
            if is_reply and self.cut_after is not None and passed + len(data) > self.cut_after:
                sink.write(data[: max(0, self.cut_after - passed)])
                await sink.drain()
                raise _CutError
            passed += len(data)
            await self._write(sink, data)

    async def _write(self, sink: asyncio.StreamWriter, data: bytes) -> None:
        piece_bytes = _SLOW_PIECE if self.bytes_per_second else len(data)
        for start in range(0, len(data), piece_bytes):
            piece = data[start : start + piece_bytes]
            sink.write(piece)
            await sink.drain()
            if self.bytes_per_second:
                await asyncio.sleep(len(piece) / self.bytes_per_second)


async def _read(source: asyncio.StreamReader, held: "asyncio.Queue[tuple[float, bytes]]") -> None:
    data = b"?"
    while data:  # the empty one says that there is no more
        data = await source.read(_CHUNK)
        await held.put((asyncio.get_running_loop().time(), data))
    await asyncio.Event().wait()  # what is held back still has to be written


async def _first_to_end(*coroutines: Coroutine[None, None, None]) -> None:
    """Run all until one ends; the error of one is raised, the others are cancelled."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
