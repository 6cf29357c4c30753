"""Blocking connections by address: one for each thread that sends at the same time."""

import select
import socket
import threading
import weakref
from collections import deque
from typing import Final

from rmqtools.clock import Clock
from rmqtools.config.client import ClientConfig
from rmqtools.engine.connection.blocking_connection import BlockingConnection
from rmqtools.engine.connection.transport import Connection

MAX_CONNECTIONS: Final = 64  # of one client; further threads share the loop's connections
IDLE_SECONDS: Final = 60.0  # brokers close idle connections after 120 s
FRESH_SECONDS: Final = 0.01  # after an answer: no poll before the next use, since polling releases the GIL
_OPEN_SECONDS = 0.5  # at most; longer, and the loop's connection is used
_LOOK_SECONDS = 0.05  # between two looks at whether all connections are closed
_PAUSE_SECONDS = 1.0  # without another try, after a connection could not be opened
_HAS_POLL = hasattr(select, "poll")  # Windows has none


class _PoolSocket(socket.socket):
    """Socket that closes without a ResourceWarning when its connection was lost to an interrupt."""

    __del__ = socket.SocketType.close  # written in C: nothing can interrupt it


class ConnectionPool:
    """Lends blocking connections to threads. Safe to use from any thread.

    Nothing fails here: where it has no connection, the loop's connection is to be used, whose errors
    say why the peer cannot be reached.

    It has no lock: a signal handler may close the client while the thread that it interrupts is in here. Each
    access to a table is one call of a built-in type, which no other thread can interrupt.

    It refers to lent connections weakly. A signal handler that raises may interrupt a thread between any two
    steps of lending and giving back. Then no reference to the connection is left: Python closes it, and it is
    no longer counted.
    """

    def __init__(self, config: ClientConfig, clock: Clock) -> None:
        self._max_frame_bytes = config.max_frame_bytes
        self._clock = clock
        self._idle: dict[str, deque[BlockingConnection]] = {}  # the one used last is the last
        self._open: set[weakref.ref[BlockingConnection]] = set()  # idle and lent ones
        self._paused: dict[str, float] = {}  # addresses not to be tried before this time
        self._is_cut = False
        self._all_closed = threading.Event()

    def __len__(self) -> int:
        return len(self._open)

    def take(self, beside: Connection, timeout: float) -> BlockingConnection | None:
        """Return a connection to the peer of ``beside``, for :meth:`give_back`; None: use ``beside``.

        Args:
            beside: the loop's connection; connections made beside an earlier one are closed.
            timeout: seconds that are left for the whole request.
        """
        idle = self._idle.get(beside.addr)
        while idle and (connection := _popped(idle)) is not None:
            # a broker that ends has ended the loop's connection as well
            is_fresh = self._clock.monotonic() - connection.used_at < FRESH_SECONDS
            if connection.beside is beside and (is_fresh or connection.is_quiet()):
                return connection
            self._discard(connection)
        return self._make(beside, timeout)

    def give_back(self, connection: BlockingConnection) -> None:
        """Keep a connection for the next request; close it if it is spent."""
        if connection.is_spent:
            self._discard(connection)
            return
        connection.used_at = self._clock.monotonic()
        self._idle[connection.addr].append(connection)
        if self._is_cut:
            self._discard_idle()

    def close_idle(self) -> None:
        """Close connections that nobody has used for a minute. Called on the loop, as :meth:`cut`."""
        too_old = self._clock.monotonic() - IDLE_SECONDS
        for idle in self._idle.values():
            doomed = [connection for connection in idle.copy() if connection.used_at <= too_old]
            for connection in doomed:
                if _removed(idle, connection):  # otherwise it was lent meanwhile
                    self._discard(connection)

    def cut(self) -> None:
        """End lending, and close all connections: threads that wait for an answer get an error."""
        self._is_cut = True
        for reference in self._open.copy():
            if (connection := reference()) is not None:
                connection.shut()
        self._discard_idle()
        if not self._open:
            self._all_closed.set()

    def join(self, timeout: float) -> None:
        """Wait until all connections are given back and closed, after :meth:`cut`."""
        deadline = self._clock.monotonic() + timeout
        while self._open and (left := deadline - self._clock.monotonic()) > 0:
            self._all_closed.wait(min(left, _LOOK_SECONDS))  # one that was abandoned sets no event

    def _make(self, beside: Connection, timeout: float) -> BlockingConnection | None:
        peer, now = beside.peer, self._clock.monotonic()
        if peer is None or beside.is_tls or not _HAS_POLL or now < self._paused.get(beside.addr, now):
            return None
        if timeout <= 0 or self._is_cut or len(self._open) >= MAX_CONNECTIONS:
            return None
        try:
            sock = _connected(peer, min(_OPEN_SECONDS, timeout / 2))
        except OSError:
            self._paused[beside.addr] = now + _PAUSE_SECONDS
            return None
        connection = BlockingConnection(
            sock, beside, max_frame_bytes=self._max_frame_bytes, clock=self._clock
        )
        self._open.add(weakref.ref(connection, self._open.discard))
        self._idle.setdefault(beside.addr, deque())
        if self._is_cut:  # after it was noted, so that either this or `cut` ends it
            self._discard(connection)
            return None
        return connection

    def _discard_idle(self) -> None:
        for idle in self._idle.copy().values():
            while (connection := _popped(idle)) is not None:
                self._discard(connection)

    def _discard(self, connection: BlockingConnection) -> None:
        connection.close()
        self._open.discard(weakref.ref(connection))
        if self._is_cut and not self._open:
            self._all_closed.set()


def _popped(idle: deque[BlockingConnection]) -> BlockingConnection | None:
    """Return the connection used last, if there is one."""
    try:
        return idle.pop()
    except IndexError:
        return None


def _removed(idle: deque[BlockingConnection], connection: BlockingConnection) -> bool:
    """Remove a connection; whether it was there."""
    try:
        idle.remove(connection)
    except ValueError:
        return False
    return True


def _connected(peer: tuple[str, int] | tuple[str, int, int, int], timeout: float) -> socket.socket:
    """Return a socket connected to an address, not a name: names may take their time to resolve.

    Raises:
        OSError: not within ``timeout``.
    """
    sock = _PoolSocket(socket.AF_INET if len(peer) == 2 else socket.AF_INET6)
    try:
        sock.settimeout(timeout)
        sock.connect(peer)
    except BaseException:
        sock.close()
        raise
    return sock
