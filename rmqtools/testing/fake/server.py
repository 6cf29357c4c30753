"""A listening socket for the remoting protocol; its creator supplies the answers."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Self, cast

from rmqtools.errors import ProtocolError
from rmqtools.protocol.wire.command import RemotingCommand, decode_command, encode_command
from rmqtools.protocol.wire.framing import FrameDecoder

Answer = RemotingCommand | bytes | None
"""A response, raw bytes to write instead of one, or None for silence."""

_ACCEPTING = 5  # loop iterations until an accepted connection is made; there is no event of asyncio's for it


class Peer(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self.addr = ""

    @property
    def is_open(self) -> bool:
        """True if the connection accepts writes."""
        return self._transport is not None and not self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write bytes unchanged; a frozen server writes them after its thaw, a closed connection never."""
        if (unwritten := self._server.unwritten) is not None:
            unwritten.append((self, data))
        elif self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def answer(self, request: RemotingCommand, answer: Answer) -> None:
        """Answer one request, unless it is one-way."""
        if isinstance(answer, bytes):
            self.write(answer)
        elif answer is not None and not request.is_oneway:
            self.write(encode_command(answer, opaque=request.opaque))

    def drop(self) -> None:
        """Break the connection."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :meth:`asyncio.Protocol.connection_made`."""
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's are of no such class
        # asyncio sets it only on sockets whose protocol number is named, unlike those of create_server
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = transport.get_extra_info("peername")[:2]
        self.addr = f"{host}:{port}"
        self._server.connected(self)

    def data_received(self, data: bytes) -> None:
        """See :meth:`asyncio.Protocol.data_received`."""
        try:
            for frame in self._decoder.feed(data):
                self._server.received(decode_command(frame), self)
        except ProtocolError:
            self.drop()  # as a broker does with unreadable bytes

    def pause(self) -> None:
        """Read no more bytes, like a stopped process."""
        if self._transport is not None:
            # Not at once: Python 3.11.2 begins to read after connection_made, whatever was paused in it.
            asyncio.get_running_loop().call_soon(self._transport.pause_reading)

    def connection_lost(self, error: Exception | None) -> None:
        """See :meth:`asyncio.Protocol.connection_lost`."""
        self._server.disconnected(self)


class Server:
    """One address on loopback. Runs on the loop that called :meth:`start`.

    Args:
        handle: returns the answer to a request; None: the answer comes later through the peer, or never.
        greeting: bytes written as soon as a client connects.
        reads: False: read no bytes, like a stopped process.
        on_close: called with each closed connection.
    """

    def __init__(
        self,
        handle: Callable[[RemotingCommand, Peer], Answer],
        *,
        greeting: bytes = b"",
        reads: bool = True,
        on_close: Callable[[Peer], None] | None = None,
    ) -> None:
        self._handle = handle
        self._greeting = greeting
        self._reads = reads
        self._on_close = on_close
        self._socket: socket.socket | None = None
        self._opening: asyncio.Task[asyncio.Server] | None = None
        self.peers: list[Peer] = []
        self.accepted = 0  # connections so far
        self.unwritten: list[tuple[Peer, bytes]] | None = None  # while it is frozen: what waits for the thaw
        self.addr = ""

    @property
    def is_listening(self) -> bool:
        """True between :meth:`start` and :meth:`stop`."""
        return self._opening is not None

    def start(self) -> None:
        """Listen at a free port, or after :meth:`stop` at the former one; accepts connections on return."""
        host, _, port = self.addr.partition(":")
        self._socket = socket.create_server((host or "127.0.0.1", int(port or 0)), backlog=128)
        self.addr = "{}:{}".format(*self._socket.getsockname()[:2])
        opened = asyncio.get_running_loop().create_server(lambda: Peer(self), sock=self._socket)
        self._opening = asyncio.create_task(opened)

    def stop(self) -> None:
        """Stop listening and break all connections."""
        opening, self._opening = self._opening, None
        self.unwritten = None
        if opening is not None and opening.done():
            opening.result().close()
        elif opening is not None:
            opening.add_done_callback(lambda opened: opened.result().close())
        self.disconnect()

    async def close(self) -> None:
        """Stop, and wait until every connection has ended."""
        opening = self._opening
        if opening is not None:
            await self._finish_accepting(await opening)
        self.stop()
        if opening is not None:
            await opening.result().wait_closed()
        while self.peers:  # noqa: ASYNC110 - there is no event, only loop iterations
            await asyncio.sleep(0)  # connection_lost is called in the next loop iteration

    async def _finish_accepting(self, opened: asyncio.Server) -> None:
        """Accept no more. Lets accepted connections be made; otherwise their sockets would stay open."""
        for listening in opened.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(_ACCEPTING):
            await asyncio.sleep(0)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Self]:
        """Listen during a block."""
        self.start()
        try:
            yield self
        finally:
            await self.close()

    def disconnect(self) -> None:
        """Break all connections."""
        for peer in [*self.peers]:
            peer.drop()

    def freeze(self) -> None:
        """Write nothing until :meth:`thaw`."""
        if self.unwritten is None:
            self.unwritten = []

    def thaw(self) -> None:
        """Write what was not written meanwhile."""
        unwritten, self.unwritten = self.unwritten, None
        for peer, data in unwritten or ():
            peer.write(data)

    def say(self, data: bytes) -> None:
        """Write to all connections."""
        for peer in self.peers:
            peer.write(data)

    def connected(self, peer: Peer) -> None:
        """Handle a new connection."""
        self.peers.append(peer)
        self.accepted += 1
        if self._opening is None:  # it was accepted just before the server stopped
            peer.drop()
            return
        peer.write(self._greeting)
        if not self._reads:
            peer.pause()

    def received(self, request: RemotingCommand, peer: Peer) -> None:
        """Handle a request, or an answer to the server's own request."""
        peer.answer(request, self._handle(request, peer))

    def disconnected(self, peer: Peer) -> None:
        """Handle a closed connection."""
        self.peers.remove(peer)
        if self._on_close is not None:
            self._on_close(peer)
