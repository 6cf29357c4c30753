"""A server on loopback that answers as a test says: only for what a real broker cannot be made to answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from rmqtools.protocol.command import RemotingCommand, decode_command, encode_command
from rmqtools.protocol.framing import FrameDecoder

Script = Callable[[RemotingCommand], RemotingCommand | bytes | None]


class ScriptedPeer:
    """``script(request)`` gives the response, raw bytes to write instead, or None for silence.

    ``requests`` holds what has arrived; ``greeting`` is written as soon as somebody connects. With
    ``reads=False`` it takes no bytes, as a stopped process.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        greeting: bytes = b"",
        hang_up: bool = False,
        reads: bool = True,
    ) -> None:
        self._script = script or (lambda request: None)
        self._greeting = greeting
        self._hang_up = hang_up
        self._reads = reads
        self._writers: list[asyncio.StreamWriter] = []
        self.requests: list[RemotingCommand] = []
        self.addr = ""

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["ScriptedPeer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.addr = f"{host}:{port}"
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.close()
            await server.wait_closed()

    def hang_up(self) -> None:
        """Drop everybody who is connected."""
        for writer in self._writers:
            writer.transport.abort()

    async def say(self, data: bytes) -> None:
        """Write to everybody who is connected."""
        for writer in self._writers:
            writer.write(data)
            await writer.drain()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        writer.write(self._greeting)
        if not self._reads:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        decoder = FrameDecoder()
        while data := await reader.read(65536):
            if self._hang_up:
                writer.close()
                return
            for frame in decoder.feed(data):
                self._answer(decode_command(frame), writer)

    def _answer(self, request: RemotingCommand, writer: asyncio.StreamWriter) -> None:
        self.requests.append(request)
        answer = self._script(request)
        if isinstance(answer, RemotingCommand):
            answer.opaque = request.opaque
            answer = encode_command(answer)
        if answer is not None:
            writer.write(answer)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous test, for 20 seconds at the most."""

    async def main() -> None:
        await asyncio.wait_for(scenario(), 20)

    asyncio.run(main())
