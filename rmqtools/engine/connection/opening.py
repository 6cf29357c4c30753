"""The steps of opening a connection, so that a failure names its step.

look up the name -> connect -> shake hands (TLS)
"""

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

P = TypeVar("P", bound=asyncio.BaseProtocol)

_NO_LINGER = struct.pack("ii", 1, 0)  # on, for no seconds: close sends a reset

_Address = tuple[int, int, int, str, Any]
"""One result of getaddrinfo: family, kind, protocol, canonical name, address."""


class Step(StrEnum):
    """A step of opening a connection."""

    LOOK_UP = "name look-up"
    CONNECT = "connect"
    HANDSHAKE = "TLS handshake"


class Opening:
    """One connection that is being opened.

    Attributes:
        step: the step under way, or the one that failed.
    """

    def __init__(self) -> None:
        self.step = Step.LOOK_UP

    async def open(
        self,
        host: str,
        port: int,
        protocol_factory: Callable[[], P],
        *,
        resets: bool = False,
        ssl: Any = None,
        **tls: Any,
    ) -> P:
        """Open a connection to one of a host's addresses; ``ssl``, ``tls``: as for ``create_connection``.

        ``resets``: closing, and the end of this process, drop what the peer has not accepted yet.

        Raises:
            OSError: an address refused, or TLS failed.
            ValueError: the name cannot be one.
            RuntimeError: the interpreter is exiting.
        """
        found = await _look_up(host, port)
        self.step = Step.CONNECT
        sock = await _connect(found)
        if resets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            _probe(sock)
        if ssl is not None:
            self.step = Step.HANDSHAKE
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(protocol_factory, sock=sock, ssl=ssl, **tls)
        return protocol


def _probe(sock: socket.socket) -> None:
    """Let the kernel notice within half a minute that a host is gone, while nothing is on the wire to it."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):  # not on every system
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _look_up(host: str, port: int) -> Sequence[_Address]:
    """Return a host's addresses; a numeric one is not looked up, which would take a thread."""
    kind = {"type": socket.SOCK_STREAM, "proto": socket.IPPROTO_TCP}
    try:
        return socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST, **kind)
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(host, port, **kind)


async def _connect(found: Sequence[_Address]) -> socket.socket:
    """Connect to the first address that accepts."""
    failures: list[OSError] = []
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failures.append(error)
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    if len(failures) == 1:
        raise failures[0]
    raise OSError("; ".join(map(str, failures)))
