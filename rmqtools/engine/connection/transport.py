"""One TCP connection: sends commands, matches answers by opaque, answers the peer's requests.

- A request to a connection that is already closed was never sent: this is ``RemotingConnectError``, not an
  unknown outcome.
- A request that is alone is written at once; further requests of the same loop iteration are written together
  at its end. A system call costs as much as the rest of a send. A connection has one timer, set to the
  earliest deadline.
- A connection that received nothing while a request timed out is not used again. The host may be gone, and
  TCP takes a quarter of an hour to notice. Closing waits one second for a peer that does not take its bytes.
"""

import asyncio
import itertools
import math
import ssl
from dataclasses import dataclass
from typing import cast

from rmqtools.engine.connection.peer_requests import PeerRequests, RequestHandler
from rmqtools.engine.connection.tls import why_hung_up
from rmqtools.errors import (
    ConnectionLostError,
    ProtocolError,
    RemotingConnectError,
    RemotingTimeoutError,
    RocketMQError,
)
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode
from rmqtools.model.frozen import maker_of
from rmqtools.protocol.wire.command import RemotingCommand, decode_command, decode_whole
from rmqtools.protocol.wire.framing import Frame, FrameDecoder
from rmqtools.protocol.wire.template import Request
from rmqtools.protocol.wire.wrong_protocol import refuse_foreign_protocol

log = get_logger(__name__)

_CLOSE_GRACE = 1.0  # seconds
_LARGE_BYTES = 64 * 1024  # frame size from which joining it with others costs more than a system call
_SLOW_SECONDS, _LEAST_GROWTH = 3.0, 1024  # of a frame: seconds, bytes a second
_SILENCE = 0.2  # seconds; a shorter wait proves nothing about the connection


@dataclass(slots=True, eq=False)
class _Awaited:
    """A request on the wire."""

    answer: asyncio.Future[RemotingCommand]
    deadline: float
    timeout: float
    code: int
    bytes_received_before: int


_awaited = maker_of(_Awaited)


@dataclass(slots=True, eq=False)
class _Unfinished:
    """A frame that has begun to come: the bytes received by a time, and whether its growth is checked."""

    since: float
    bytes_received: int
    is_watched: bool = False
    is_expected: bool = True  # a request waits for an answer, or its time was over before one came


class Connection(asyncio.BufferedProtocol):
    """A connection to one address. Used from its event loop only."""

    def __init__(
        self,
        addr: str,
        *,
        on_request: RequestHandler,
        max_frame_bytes: int,
        first_opaque: int = 1,
        may_restart: bool = False,
    ) -> None:
        self.addr = addr
        self._may_restart = may_restart
        self._decoder = FrameDecoder(max_frame_bytes=max_frame_bytes)
        self._opaques = itertools.count(first_opaque)
        self._pending: dict[int, _Awaited] = {}
        self._unsent: list[bytes] = []
        self._alarm: asyncio.Handle | None = None  # one timer for all requests: one each would be slow
        self._alarm_at = 0.0  # kept here: uvloop's handle of a timer that is due at once has no time
        self._requests = PeerRequests(
            addr, handle=on_request, write=self._write, takes_bytes=self._takes_bytes
        )
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._writable = asyncio.Event()
        self.bytes_received = 0
        self.peer: tuple[str, int] | tuple[str, int, int, int] | None = None  # its address
        self._unfinished: _Unfinished | None = None
        self._owed = 0  # answers to requests whose time was over
        self.is_silent = False  # no bytes came while a request timed out: the peer may be unreachable
        self._failure: ProtocolError | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self.is_tls = False
        self._is_closed_here = False

    @property
    def local_addr(self) -> str:
        """Address of this end, ``host:port``, as brokers list it without NAT; empty if not connected."""
        if self._transport is None:
            return ""
        return "{}:{}".format(*self._transport.get_extra_info("sockname")[:2])

    @property
    def is_open(self) -> bool:
        """True if commands can be written."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_usable(self) -> bool:
        """True if it can be used: open, not silent, and without unexpected bytes of an unfinished frame.

        No answer could be read behind the bytes of such a frame. If they begin a request of the peer, that
        request is lost.
        """
        return (
            self.is_open and not self.is_silent and (self._unfinished is None or self._unfinished.is_expected)
        )

    @property
    def is_ready(self) -> bool:
        """True if a request can be written at once: the connection is usable, and the peer accepts bytes."""
        return self._writable.is_set() and self.is_usable

    async def invoke(self, command: Request, timeout: float) -> RemotingCommand:
        """Send a request and wait at most ``timeout`` seconds for its answer.

        Raises:
            RemotingTimeoutError: no answer in time.
            RemotingConnectError: the connection was already closed: nothing was sent.
            ConnectionLostError: the connection broke before the answer.
            ProtocolError: the request cannot be written, or the peer does not speak the remoting protocol.
        """
        began = self._loop.time()
        await self.wait_writable(timeout)
        return await self.start(command, max(0.0, timeout - (self._loop.time() - began)))

    def start(self, command: Request, timeout: float) -> asyncio.Future[RemotingCommand]:
        """Write a request at once; return a future with the answer, or an error as of :meth:`invoke`."""
        opaque = next(self._opaques) & 0x7FFF_FFFF
        future: asyncio.Future[RemotingCommand] = self._loop.create_future()
        if timeout <= 0:
            future.set_exception(RemotingConnectError(f"no time left to ask {self.addr}: nothing was sent"))
            return future
        if not self.is_open:
            future.set_exception(self._unusable())
            return future
        try:
            data = command.encode(opaque)
        except ProtocolError as error:  # before it counts as pending: no answer will come
            future.set_exception(error)
            return future
        deadline = self._loop.time() + timeout
        self._pending[opaque] = _awaited(future, deadline, timeout, command.code, self.bytes_received)
        if self._alarm is None or self._alarm_at > deadline:
            self._set_alarm(deadline)
        self._write(data)
        return future

    def start_kept(self, command: Request) -> asyncio.Future[RemotingCommand]:
        """Write a request at once, as :meth:`start`; its answer counts however late it comes.

        The future ends with the answer, or with an error once the connection is lost. The connection is kept
        open until then, unless its owner closes it.
        """
        return self.start(command, math.inf)

    def send_oneway(self, command: Request) -> None:
        """Write a command without an answer.

        Raises:
            RemotingConnectError: the connection is closed.
        """
        if not self.is_open:
            raise self._unusable()
        self._write(command.encode(next(self._opaques) & 0x7FFF_FFFF))

    async def close(self) -> None:
        """Close, and wait until the socket is closed. Pending answers fail.

        Bytes that are written, but not yet accepted by the peer, have one second to be sent.
        """
        self._is_closed_here = True
        if self._transport is not None:
            self._flush()
            self._transport.close()
            await asyncio.wait({self._closed}, timeout=_CLOSE_GRACE)
            self._transport.abort()
            await self._closed
        await self._requests.stop()

    async def wait_writable(self, timeout: float) -> None:
        """Wait while the peer accepts no bytes.

        Raises:
            RemotingConnectError: it accepted none for ``timeout`` seconds, so nothing of the request was
                sent.
        """
        if self._writable.is_set():
            return
        try:
            await asyncio.wait_for(self._writable.wait(), timeout)
        except TimeoutError as error:
            raise RemotingConnectError(
                f"{self.addr} took no bytes for {timeout:.3f} s: nothing was sent"
            ) from error

    def note_silence(self, bytes_received_before: int, waited: float) -> bool:
        """Note that a request got no answer; whether the peer has sent nothing at all meanwhile.

        Called from any thread: a request to the same peer may have had a connection of its own.
        """
        if self.bytes_received != bytes_received_before or waited < _SILENCE:
            return False
        self.is_silent = True
        return True

    def retire(self) -> None:
        """Close the connection once it has no pending answer; new requests use another one."""
        waiting = [awaited.answer for awaited in self._pending.values() if not awaited.answer.done()]
        if not waiting:
            self.abort()
            return
        waiting[-1].add_done_callback(lambda _: self.retire())

    def abort(self) -> None:
        """Close the connection without waiting."""
        self._is_closed_here = True
        if self._transport is not None:
            self._transport.abort()

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_tls = transport.get_extra_info("ssl_object") is not None
        self.peer = transport.get_extra_info("peername")
        self._writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        """See :class:`asyncio.BufferedProtocol`."""
        self._room = self._decoder.room()
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        try:
            if self.bytes_received == 0:
                refuse_foreign_protocol(bytes(self._room[:nbytes]))
            self.bytes_received += nbytes
            self.is_silent = False
            whole = decode_whole(self._room, nbytes, self._decoder)
            if whole is not None:
                self._unfinished = None
                self._take(whole)
                return
            frames = self._decoder.advance(nbytes)
            if not self._decoder.is_inside_frame:
                self._unfinished = None
            elif frames or self._unfinished is None:
                self._unfinished = _Unfinished(self._loop.time(), self.bytes_received)
            self._take_all(frames)
            if self._unfinished is not None and not (self._pending or self._owed):
                self._unfinished.is_expected = False
        except ProtocolError as error:
            self._drop(error)
            return
        if self._decoder.is_held:
            self._loop.call_soon(self._take_held)

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        self._take_held()
        self._decoder.drop_unfinished()
        self._writable.set()  # wakes writers, which then see that the connection is closed
        for awaited in self._pending.values():
            if not awaited.answer.done():
                awaited.answer.set_exception(self._lost(exc))
        self._pending.clear()
        self._unsent.clear()
        self._requests.cancel()
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

    # internals

    def _write(self, data: bytes) -> None:
        """Write a frame. Small frames written in one loop iteration share one system call."""
        if not self._unsent:
            if len(self._pending) <= 1 and self._transport is not None:
                self._transport.write(data)
                return
            self._loop.call_soon(self._flush)
        self._unsent.append(data)
        if len(data) > _LARGE_BYTES:
            self._flush()

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._transport is not None and unsent:
            # not writelines: it never pauses in Python 3.12.0-3.12.8 and 3.13.0-3.13.1 (CVE-2024-12254)
            self._transport.write(b"".join(unsent))

    def _take_all(self, frames: list[Frame]) -> None:
        for frame in frames:
            self._take(decode_command(frame))
        if self._decoder.error is not None:
            raise self._decoder.error

    def _take_held(self) -> None:
        """Take a large frame whose memory was still in use when it was complete."""
        if self._failure is not None:
            return
        try:
            self._take_all(self._decoder.collect())
        except ProtocolError as error:
            self._drop(error)

    def _drop(self, error: ProtocolError) -> None:
        self._failure = ProtocolError(f"{self.addr}: {error}")
        log.info("connection_dropped", addr=self.addr, reason=str(error))
        self.abort()

    def _take(self, command: RemotingCommand) -> None:
        if not command.is_response:
            self._requests.take(command)
            return
        awaited = self._pending.pop(command.opaque, None)
        if awaited is None:
            self._owed = max(0, self._owed - 1)  # it came after its timeout
        elif not awaited.answer.done():
            awaited.answer.set_result(command)

    def _takes_bytes(self) -> bool:
        return self.is_open and self._writable.is_set()

    def _set_alarm(self, deadline: float) -> None:
        """Check the requests when the earliest deadline is reached."""
        if self._alarm is not None:
            self._alarm.cancel()
        if deadline < math.inf:
            self._alarm, self._alarm_at = self._loop.call_at(deadline, self._expire), deadline
        else:
            self._alarm = None  # only kept requests are on the wire

    def _expire(self) -> None:
        """Fail requests after their deadline; remove those whose callers were cancelled."""
        self._alarm, now = None, self._loop.time()
        for opaque, awaited in list(self._pending.items()):
            if awaited.answer.done() or awaited.deadline <= now:
                del self._pending[opaque]
                self._owed += 1
                self._give_up(awaited)
        if self._pending:
            self._set_alarm(min(awaited.deadline for awaited in self._pending.values()))

    def _give_up(self, awaited: _Awaited) -> None:
        if awaited.answer.done():
            return
        text = (
            f"{self.addr} did not answer {RequestCode.describe(awaited.code)} within {awaited.timeout:.3f} s"
        )
        awaited.answer.set_exception(RemotingTimeoutError(text))
        if self.note_silence(awaited.bytes_received_before, awaited.timeout):
            return
        if (unfinished := self._unfinished) is not None and not unfinished.is_watched:
            unfinished.is_watched = True
            self._loop.call_at(unfinished.since + _SLOW_SECONDS, self._check_growth, unfinished)

    def _check_growth(self, unfinished: _Unfinished) -> None:
        """Drop the connection if the frame that an answer waits for hardly grows: bytes alone are no life."""
        if self._unfinished is not unfinished or not self.is_open:
            return
        now = self._loop.time()
        grown, seconds = self.bytes_received - unfinished.bytes_received, now - unfinished.since
        if grown < _LEAST_GROWTH * seconds:
            log.info("connection_dropped", addr=self.addr, reason=f"{grown} bytes in {seconds:.1f} s")
            self.abort()
            return
        unfinished.since, unfinished.bytes_received = now, self.bytes_received
        self._loop.call_later(_SLOW_SECONDS, self._check_growth, unfinished)

    def _unusable(self) -> RocketMQError:
        return self._failure or RemotingConnectError(f"connection to {self.addr} is closed: nothing was sent")

    def _lost(self, cause: Exception | None) -> RocketMQError:
        if self._failure is not None:
            return self._failure
        is_new = self.bytes_received == 0 and not self._is_closed_here
        if is_new and (found := why_hung_up(cause, tls=self.is_tls)) is not None:
            return self._hung_up(*found, cause)
        error = ConnectionLostError(f"connection to {self.addr} lost: {cause or 'closed by the peer'}")
        error.__cause__ = cause
        return error

    def _hung_up(self, reason: str, is_final: bool, cause: Exception | None) -> RocketMQError:
        """Return the error of a connection that ended before a byte came. TLS alert: nothing was read."""
        kind = RemotingConnectError if isinstance(cause, ssl.SSLError) else ConnectionLostError
        error = kind(f"connection to {self.addr} lost: {reason}")
        error.retriable = self._may_restart or not is_final
        error.__cause__ = cause
        return error
