"""One TCP connection: commands out, answers matched by opaque, requests of the peer answered."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast

from rmqtools.errors import (
    ConnectionLostError,
    ProtocolError,
    RemotingConnectError,
    RemotingTimeoutError,
    RocketMQError,
)
from rmqtools.log import get_logger
from rmqtools.protocol.command import RemotingCommand, decode_command, encode_command
from rmqtools.protocol.foreign import name_foreign_protocol
from rmqtools.protocol.framing import FrameDecoder

log = get_logger(__name__)

_CLOSE_GRACE = 1.0  # seconds
_SILENCE = 0.2  # seconds; a shorter wait says nothing of the connection

RequestHandler = Callable[[RemotingCommand, str], Awaitable[RemotingCommand | None]]


class Connection(asyncio.Protocol):
    """A connection to one address. Used from its event loop only."""

    def __init__(self, addr: str, *, on_request: RequestHandler, max_frame_bytes: int) -> None:
        self.addr = addr
        self._on_request = on_request
        self._decoder = FrameDecoder(max_frame_bytes=max_frame_bytes)
        self._opaques = itertools.count(1)
        self._pending: dict[int, asyncio.Future[RemotingCommand]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._writable = asyncio.Event()
        self._bytes_received = 0
        self.is_silent = False  # nothing came while a request was waited for: it may lead nowhere any more
        self._failure: ProtocolError | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()

    @property
    def is_open(self) -> bool:
        """Whether commands can be written."""
        return self._transport is not None and not self._transport.is_closing()

    async def invoke(self, command: RemotingCommand, timeout: float) -> RemotingCommand:
        """Send a request and wait at most ``timeout`` seconds for its answer.

        Raises:
            RemotingTimeoutError: no answer in time.
            RemotingConnectError: the connection was closed already: nothing was sent.
            ConnectionLostError: the connection broke first.
            ProtocolError: the peer does not speak the remoting protocol.
        """
        began = self._loop.time()
        await self.wait_writable(timeout)
        return await self.start(command, max(0.0, timeout - (self._loop.time() - began)))

    def start(self, command: RemotingCommand, timeout: float) -> asyncio.Future[RemotingCommand]:
        """Write a request at once; the returned future gives the answer or raises as :meth:`invoke` does."""
        opaque = next(self._opaques) & 0x7FFF_FFFF
        future: asyncio.Future[RemotingCommand] = self._loop.create_future()
        if timeout <= 0:
            future.set_exception(RemotingConnectError(f"no time left to ask {self.addr}: nothing was sent"))
            return future
        if not self.is_open:
            future.set_exception(self._unusable())
            return future
        self._pending[opaque] = future
        timer = self._loop.call_later(
            timeout, self._expire, opaque, command.code, timeout, self._bytes_received
        )

        def forget(_: asyncio.Future[RemotingCommand]) -> None:
            timer.cancel()
            self._pending.pop(opaque, None)

        future.add_done_callback(forget)
        self._write(replace(command, opaque=opaque))
        return future

    def send_oneway(self, command: RemotingCommand) -> None:
        """Write a command that nobody answers.

        Raises:
            RemotingConnectError: the connection is closed.
        """
        if not self.is_open:
            raise self._unusable()
        self._write(replace(command, opaque=next(self._opaques) & 0x7FFF_FFFF))

    async def close(self) -> None:
        """Close, and wait until the socket is gone. Answers still awaited fail.

        What is written but not taken by the peer has a second to leave.
        """
        if self._transport is not None:
            self._transport.close()
            await asyncio.wait({self._closed}, timeout=_CLOSE_GRACE)
            self._transport.abort()
            await self._closed
        for task in list(self._answering):
            task.cancel()

    async def wait_writable(self, timeout: float) -> None:
        """Wait while the peer takes no bytes.

        Raises:
            RemotingConnectError: it took none for ``timeout`` seconds, so nothing of the request was sent.
        """
        if self._writable.is_set():
            return
        try:
            await asyncio.wait_for(self._writable.wait(), timeout)
        except TimeoutError as error:
            raise RemotingConnectError(
                f"{self.addr} took no bytes for {timeout:.3f} s: nothing was sent"
            ) from error

    def retire(self) -> None:
        """Drop the connection as soon as no answer is awaited on it; another is used from now on."""
        waiting = [future for future in self._pending.values() if not future.done()]
        if not waiting:
            self.abort()
            return
        waiting[-1].add_done_callback(lambda _: self.retire())

    def abort(self) -> None:
        """Drop the connection without waiting."""
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        try:
            if self._bytes_received == 0:
                self._refuse_foreign(data)
            self._bytes_received += len(data)
            self.is_silent = False
            for frame in self._decoder.feed(data):
                self._take(decode_command(frame))
            if self._decoder.error is not None:
                raise self._decoder.error
        except ProtocolError as error:
            self._failure = ProtocolError(f"{self.addr}: {error}")
            log.info("connection_dropped", addr=self.addr, reason=str(error))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        self._writable.set()  # whoever waits to write must see that there is nothing to write to
        for future in list(self._pending.values()):
            if not future.done():
                future.set_exception(self._lost(exc))
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        """See :class:`asyncio.Protocol`."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """See :class:`asyncio.Protocol`."""
        self._writable.set()

    # inside

    def _write(self, command: RemotingCommand) -> None:
        assert self._transport is not None
        self._transport.write(encode_command(command))

    def _refuse_foreign(self, data: bytes) -> None:
        if (protocol := name_foreign_protocol(data)) is not None:
            raise ProtocolError(
                f"this port speaks {protocol}; give the name server's or broker's remoting port"
            )

    def _take(self, command: RemotingCommand) -> None:
        if not command.is_response:
            task = self._loop.create_task(self._answer(command))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
            return
        future = self._pending.pop(command.opaque, None)
        if future is not None and not future.done():
            future.set_result(command)  # else: it came after its timeout

    async def _answer(self, request: RemotingCommand) -> None:
        response = await self._on_request(request, self.addr)
        if response is not None and not request.is_oneway and self.is_open:
            self._write(replace(response, opaque=request.opaque))

    def _expire(self, opaque: int, code: int, timeout: float, bytes_received_before: int) -> None:
        future = self._pending.get(opaque)
        if future is None or future.done():
            return
        text = f"{self.addr} did not answer request {code} within {timeout:.3f} s"
        future.set_exception(RemotingTimeoutError(text))
        if self._bytes_received == bytes_received_before and timeout >= _SILENCE:
            self.is_silent = True

    def _unusable(self) -> RocketMQError:
        return self._failure or RemotingConnectError(f"connection to {self.addr} is closed: nothing was sent")

    def _lost(self, cause: Exception | None) -> RocketMQError:
        if self._failure is not None:
            return self._failure
        error = ConnectionLostError(f"connection to {self.addr} lost: {cause or 'closed by the peer'}")
        error.__cause__ = cause
        return error
