"""A TCP connection for threads that wait for their answers themselves.

It carries sends, and the pulls of listener threads. It lives beside the event loop's connection to the same
address: that one is made first, receives what the peer asks, and shows whether the peer can be reached.
"""

import random
import select
import socket
import struct
from collections.abc import Sequence
from typing import Final

from rmqtools.clock import Clock
from rmqtools.compiled import twins
from rmqtools.engine.connection.transport import Connection
from rmqtools.errors import ConnectionLostError, ProtocolError, RemotingConnectError, RemotingTimeoutError
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand, decode_command, decode_whole
from rmqtools.protocol.wire.framing import FrameDecoder
from rmqtools.protocol.wire.template import Request
from rmqtools.protocol.wire.wrong_protocol import refuse_foreign_protocol

_SLICE_SECONDS: Final = 0.1  # longest wait of one socket call
_ANSWER_BYTES: Final = 64 * 1024  # of one socket call
_SLICE: Final = struct.pack("ll", 0, round(_SLICE_SECONDS * 1e6))  # struct timeval


class UnexpectedBytesError(Exception):
    """Bytes had come that answer nothing, or the peer has ended. Nothing was sent: use another connection."""


class BlockingConnection:
    """A connection that one thread uses at a time.

    Args:
        sock: connected; belongs to this object from now on.
        beside: the loop's connection to the same peer.
        max_frame_bytes: as of the loop's connections.
        clock: for deadlines.
    """

    def __init__(
        self, sock: socket.socket, beside: Connection, *, max_frame_bytes: int, clock: Clock
    ) -> None:
        sock.setblocking(True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _SLICE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.addr = beside.addr
        self.beside = beside
        self.used_at = clock.monotonic()
        self.is_spent = False  # a request is under way, or was left without its answer
        self._answers: dict[int, RemotingCommand | None] = {}  # of started requests, by opaque
        self._sock = sock
        self._fd = sock.fileno()
        self._clock = clock
        self._decoder = FrameDecoder(max_frame_bytes=max_frame_bytes)
        self._opaque = random.getrandbits(31)  # as of the loop's connections: a proxy matches by opaque alone
        self._has_received = False
        self._readable = select.poll()
        self._readable.register(sock, select.POLLIN)

    def is_quiet(self) -> bool:
        """Return whether nothing has come since the last answer: neither the end nor unexpected bytes."""
        return not self._readable.poll(0)

    def invoke(self, command: Request, timeout: float) -> RemotingCommand:
        """Send a request and wait at most ``timeout`` seconds for its answer, on the calling thread.

        The connection is spent after an interrupt, after bytes of another frame behind the answer, and after
        any error but RemotingConnectError and that of a request that cannot be written.

        Raises:
            UnexpectedBytesError: something has come since the last answer: nothing was sent.
            RemotingConnectError: no time is left: nothing was sent.
            ProtocolError: the request cannot be written, or the peer does not speak the remoting protocol.
            RemotingTimeoutError: no answer in time.
            ConnectionLostError: the connection broke before the answer.
        """
        if timeout <= 0:
            raise RemotingConnectError(f"no time left to ask {self.addr}: nothing was sent")
        self._opaque = opaque = self._opaque + 1 & 0x7FFF_FFFF
        data = command.encode(opaque)
        deadline = self._clock.monotonic() + timeout
        received_before = self.beside.bytes_received
        self.is_spent = True
        try:
            answer = self._exchange(data, opaque, deadline, timeout)
        except TimeoutError as error:
            self.beside.note_silence(received_before, timeout)
            text = f"{self.addr} did not answer {RequestCode.describe(command.code)} within {timeout:.3f} s"
            raise RemotingTimeoutError(text) from error
        except OSError as error:
            raise ConnectionLostError(f"connection to {self.addr} lost: {error}") from error
        except ProtocolError as error:
            raise ProtocolError(f"{self.addr}: {error}") from error
        self.is_spent = self._is_misaligned()
        return answer

    def start(self, *commands: Request) -> list[int]:
        """Send requests together without waiting; return the number of each for :meth:`finish`.

        The connection is spent until all answers have come.

        Raises:
            ProtocolError: a request cannot be written.
            ConnectionLostError: the connection broke, or the peer takes no bytes.
        """
        numbers, data = list[int](), list[bytes]()
        for command in commands:
            self._opaque = opaque = self._opaque + 1 & 0x7FFF_FFFF
            data.append(command.encode(opaque))
            numbers.append(opaque)
        self.is_spent = True
        self._answers.update(dict.fromkeys(numbers))
        try:
            self._write(b"".join(data), 0, self._clock.monotonic() + _SLICE_SECONDS)
        except OSError as error:
            raise ConnectionLostError(f"connection to {self.addr} lost: {error!r}") from error
        return numbers

    def finish(self, number: int, timeout: float) -> RemotingCommand:
        """Wait at most ``timeout`` seconds for the answer to a request of :meth:`start`.

        Raises:
            RemotingTimeoutError, ConnectionLostError, ProtocolError: as :meth:`invoke`; no further answer can
                be waited for.
        """
        answers, deadline = self._answers, self._clock.monotonic() + timeout
        try:
            while (answer := answers[number]) is None:
                for command in self._read_commands(self._receive(deadline)):
                    if command.opaque in answers and command.is_response:
                        answers[command.opaque] = command
        except TimeoutError as error:
            raise RemotingTimeoutError(f"{self.addr} did not answer within {timeout:.3f} s") from error
        except OSError as error:
            raise ConnectionLostError(f"connection to {self.addr} lost: {error}") from error
        except ProtocolError as error:
            raise ProtocolError(f"{self.addr}: {error}") from error
        del answers[number]
        self.is_spent = bool(answers) or self._is_misaligned()
        return answer

    def shut(self) -> None:
        """End the connection from another thread: a thread that waits for an answer gets an error."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it has ended already

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()
        self._decoder.drop_unfinished()

    def _is_misaligned(self) -> bool:
        """Return whether the bytes behind the last frame are no whole frame."""
        return self._decoder.is_inside_frame or self._decoder.error is not None

    def _exchange(self, data: bytes, opaque: int, deadline: float, timeout: float) -> RemotingCommand:
        """Write a request and read its answer, with one call of the socket's functions if that is enough."""
        begun: bytes | int = 0
        if twins is not None and timeout >= _SLICE_SECONDS:
            begun = twins.exchange(self._fd, data, self._has_received)
            if begun == -1:
                raise UnexpectedBytesError
        elif self._has_received and not self.is_quiet():
            raise UnexpectedBytesError
        if isinstance(begun, int):
            self._write(data, begun, deadline)
            begun = self._receive(deadline)
        return self._read(opaque, begun, deadline)

    def _write(self, data: bytes, sent: int, deadline: float) -> None:
        """Write what follows the first ``sent`` bytes."""
        while sent < len(data):
            if (taken := self._send(memoryview(data)[sent:])) == 0:
                self._wait_writable(deadline)
            sent += taken

    def _wait_writable(self, deadline: float) -> None:
        """Wait for a peer that takes its bytes slowly, or a large body."""
        writable = select.poll()
        writable.register(self._sock, select.POLLOUT)
        if not writable.poll(max(0.0, (deadline - self._clock.monotonic()) * 1000)):
            raise TimeoutError

    def _send(self, data: memoryview) -> int:
        try:
            return self._sock.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def _read(self, opaque: int, data: bytes, deadline: float) -> RemotingCommand:
        """Return the answer with this opaque. Anything else is ignored: no requests are served here."""
        while True:
            for command in self._read_commands(data):
                if command.opaque == opaque and command.is_response:
                    return command
            data = self._receive(deadline)

    def _read_commands(self, data: bytes) -> Sequence[RemotingCommand]:
        """Return the commands that end in these bytes; nearly always they are one answer.

        No generator: closing one that has more to yield drops an interrupt that comes just then.
        """
        if not data:
            raise ConnectionResetError("closed by the peer")
        if not self._has_received:
            self._has_received = True
            refuse_foreign_protocol(data)
        whole = decode_whole(data, len(data), self._decoder)
        if whole is not None:
            return (whole,)
        return [decode_command(frame) for frame in self._decoder.feed(data)]

    def _receive(self, deadline: float) -> bytes:
        """Wait in the call that receives, which is woken once; only the last slice needs a poll before it.

        What was received before may have ended in bytes that are no command.
        """
        if self._decoder.error is not None:
            raise self._decoder.error
        while True:
            left = deadline - self._clock.monotonic()
            if left < _SLICE_SECONDS and not self._readable.poll(max(0.0, left * 1000)):
                raise TimeoutError
            try:
                return self._sock.recv(_ANSWER_BYTES)
            except BlockingIOError:
                continue  # a slice has passed
