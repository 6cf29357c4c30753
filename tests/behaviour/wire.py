"""A connection that sends requests as they are, and keeps what the server says unasked."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from rmqtools.model.codes import RequestCode
from rmqtools.protocol.headers.codec import RequestHeader
from rmqtools.protocol.wire.command import (
    RemotingCommand,
    decode_command,
    encode_command,
    request,
    response,
)
from rmqtools.protocol.wire.framing import FrameDecoder

_SECONDS = 20.0


class Wire:
    """One connection; every wait ends after 20 seconds."""

    def __init__(self, addr: str) -> None:
        host, _, port = addr.partition(":")
        self._socket = socket.create_connection((host, int(port)), _SECONDS)
        self._decoder = FrameDecoder()
        self._opaques = count(1)
        self._answers: dict[int, RemotingCommand] = {}
        self.told: list[RemotingCommand] = []

    def ask(self, header: RequestHeader | RemotingCommand, body: bytes = b"", **how: Any) -> RemotingCommand:
        """Send a request and wait for its answer."""
        return self.answer(self.send(header, body, **how))

    def send(self, header: RequestHeader | RemotingCommand, body: bytes = b"", **how: Any) -> int:
        """Send a request; its opaque."""
        command = header if isinstance(header, RemotingCommand) else request(header, body, **how)
        opaque = next(self._opaques)
        self._socket.sendall(encode_command(command, opaque=opaque))
        return opaque

    def answer(self, opaque: int) -> RemotingCommand:
        """The answer to a request, once it is here."""
        self._read_until(lambda: opaque in self._answers, _SECONDS)
        assert opaque in self._answers, "no answer"
        return self._answers.pop(opaque)

    def is_answered(self, opaque: int, *, within: float) -> bool:
        """Return whether an answer comes in so many seconds."""
        self._read_until(lambda: opaque in self._answers, within)
        return opaque in self._answers

    def notice(self, code: RequestCode, *, within: float = _SECONDS) -> RemotingCommand | None:
        """The next request of that code from the server; None: none has come in time."""
        self._read_until(lambda: any(one.code == code for one in self.told), within)
        found = next((one for one in self.told if one.code == code), None)
        if found is not None:
            self.told.remove(found)
        return found

    def close(self) -> None:
        self._socket.close()

    def _read_until(self, came, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not came() and (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(1 << 20)
            except TimeoutError:
                return
            assert data, "the server has closed the connection"
            for frame in self._decoder.feed(data):
                self._take(decode_command(frame))

    def _take(self, command: RemotingCommand) -> None:
        if command.is_response:
            self._answers[command.opaque] = command
            return
        self.told.append(command)
        if not command.is_oneway:
            self._socket.sendall(encode_command(response(0, command.opaque)))


@contextmanager
def wire_to(addr: str) -> Iterator[Wire]:
    """A connection for the length of a block."""
    wire = Wire(addr)
    try:
        yield wire
    finally:
        wire.close()
