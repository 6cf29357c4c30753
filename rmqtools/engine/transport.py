"""One TCP connection: commands out, answers matched by opaque, requests of the peer answered."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from rmqtools.errors import (
    ConnectionLostError,
    ProtocolError,
    RemotingConnectError,
    RemotingTimeoutError,
    RocketMQError,
)
from rmqtools.log import get_logger
from rmqtools.protocol.command import RemotingCommand, decode_command
from rmqtools.protocol.foreign import name_foreign_protocol
from rmqtools.protocol.framing import FrameDecoder
from rmqtools.protocol.template import Request

log = get_logger(__name__)

_CLOSE_GRACE = 1.0  # seconds
_LARGE_BYTES = 64 * 1024  # of a frame: to join it with others would cost more than a call saves
_SILENCE = 0.2  # seconds; a shorter wait says nothing of the connection

RequestHandler = Callable[[RemotingCommand, str], Awaitable[RemotingCommand | None]]


@dataclass(slots=True, eq=False)
class _Awaited:
    """A request on the wire."""

    answer: asyncio.Future[RemotingCommand]
    deadline: float
    timeout: float
    code: int
    bytes_received_before: int


class Connection(asyncio.BufferedProtocol):
    """A connection to one address. Used from its event loop only."""

    def __init__(self, addr: str, *, on_request: RequestHandler, max_frame_bytes: int) -> None:
        self.addr = addr
        self._on_request = on_request
        self._decoder = FrameDecoder(max_frame_bytes=max_frame_bytes)
        self._opaques = itertools.count(1)
        self._pending: dict[int, _Awaited] = {}
        self._unsent: list[bytes] = []
        self._alarm: asyncio.TimerHandle | None = None  # one for all requests: a timer each would cost
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

    @property
    def is_usable(self) -> bool:
        """Whether it is open and has not fallen silent."""
        return self.is_open and not self.is_silent

    @property
    def is_ready(self) -> bool:
        """Whether a request may be started at once: it is usable, and the peer takes bytes."""
        return self.is_usable and self._writable.is_set()

    async def invoke(self, command: Request, timeout: float) -> RemotingCommand:
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

    def start(self, command: Request, timeout: float) -> asyncio.Future[RemotingCommand]:
        """Write a request at once; the returned future gives the answer or raises as :meth:`invoke` does."""
        opaque = next(self._opaques) & 0x7FFF_FFFF
        future: asyncio.Future[RemotingCommand] = self._loop.create_future()
        if timeout <= 0:
            future.set_exception(RemotingConnectError(f"no time left to ask {self.addr}: nothing was sent"))
            return future
        if not self.is_open:
            future.set_exception(self._unusable())
            return future
        deadline = self._loop.time() + timeout
        self._pending[opaque] = _Awaited(future, deadline, timeout, command.code, self._bytes_received)
        self._set_alarm(deadline)
        self._write(command, opaque)
        return future

    def send_oneway(self, command: Request) -> None:
        """Write a command that nobody answers.

        Raises:
            RemotingConnectError: the connection is closed.
        """
        if not self.is_open:
            raise self._unusable()
        self._write(command, next(self._opaques) & 0x7FFF_FFFF)

    async def close(self) -> None:
        """Close, and wait until the socket is gone. Answers still awaited fail.

        What is written but not taken by the peer has a second to leave.
        """
        if self._transport is not None:
            self._flush()
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
        waiting = [awaited.answer for awaited in self._pending.values() if not awaited.answer.done()]
        if not waiting:
            self.abort()
            return
        waiting[-1].add_done_callback(lambda _: self.retire())

    def abort(self) -> None:
        """Drop the connection without waiting."""
        if self._transport is not None:
            self._transport.abort()

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        self._transport = cast(asyncio.Transport, transport)
        self._writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        """See :class:`asyncio.BufferedProtocol`."""
        self._room = self._decoder.room()
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        try:
            if self._bytes_received == 0:
                self._refuse_foreign(bytes(self._room[:nbytes]))
            self._bytes_received += nbytes
            self.is_silent = False
            for frame in self._decoder.advance(nbytes):
                self._take(decode_command(frame))
            if self._decoder.error is not None:
                raise self._decoder.error
        except ProtocolError as error:
            self._failure = ProtocolError(f"{self.addr}: {error}")
            log.info("connection_dropped", addr=self.addr, reason=str(error))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        self._writable.set()  # whoever waits to write must see that there is nothing to write to
        for awaited in self._pending.values():
            if not awaited.answer.done():
                awaited.answer.set_exception(self._lost(exc))
        self._pending.clear()
        self._unsent.clear()
        if self._alarm is not None:
            self._alarm.cancel()
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        self._writable.set()

    # inside

    def _write(self, command: Request, opaque: int) -> None:
        """A small request in company leaves with the others of this turn of the loop: calls are dear."""
        data = command.encode(opaque)
        is_alone = len(self._pending) <= 1 and not self._unsent
        if not self._unsent and not is_alone:
            self._loop.call_soon(self._flush)
        self._unsent.append(data)
        if is_alone or len(data) > _LARGE_BYTES:
            self._flush()

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._transport is not None and unsent:
            self._transport.writelines(unsent)

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
        awaited = self._pending.pop(command.opaque, None)
        if awaited is not None and not awaited.answer.done():
            awaited.answer.set_result(command)  # else: it came after its timeout

    async def _answer(self, request: RemotingCommand) -> None:
        response = await self._on_request(request, self.addr)
        if response is not None and not request.is_oneway and self.is_open:
            self._write(response, request.opaque)

    def _set_alarm(self, deadline: float) -> None:
        """Look at the requests when the first one's time is up."""
        if self._alarm is not None:
            if self._alarm.when() <= deadline:
                return
            self._alarm.cancel()
        self._alarm = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        """End requests whose time is up; forget those nobody waits for any more."""
        self._alarm, now = None, self._loop.time()
        for opaque, awaited in list(self._pending.items()):
            if awaited.answer.done() or awaited.deadline <= now:
                del self._pending[opaque]
                self._give_up(awaited)
        if self._pending:
            self._set_alarm(min(awaited.deadline for awaited in self._pending.values()))

    def _give_up(self, awaited: _Awaited) -> None:
        if awaited.answer.done():
            return
        text = f"{self.addr} did not answer request {awaited.code} within {awaited.timeout:.3f} s"
        awaited.answer.set_exception(RemotingTimeoutError(text))
        if self._bytes_received == awaited.bytes_received_before and awaited.timeout >= _SILENCE:
            self.is_silent = True

    def _unusable(self) -> RocketMQError:
        return self._failure or RemotingConnectError(f"connection to {self.addr} is closed: nothing was sent")

    def _lost(self, cause: Exception | None) -> RocketMQError:
        if self._failure is not None:
            return self._failure
        error = ConnectionLostError(f"connection to {self.addr} lost: {cause or 'closed by the peer'}")
        error.__cause__ = cause
        return error
