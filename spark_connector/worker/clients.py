"""The clients of this process: one per kind and configuration, created on first use, closed when idle.

Spark reuses Python workers for many tasks, so a client outlives the task that created it. Workers are forked;
a client created before the fork belongs to the parent, so no client is shared across a fork.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import rmqtools
from rmqtools import Client, ClientConfig, ProducerConfig
from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger

if TYPE_CHECKING:
    from rmqtools import Producer

log = get_logger(__name__)

IDLE_SECONDS: Final = 600.0  # as long as Spark's Kafka sink keeps an unused producer

_Config = TypeVar("_Config", bound=ClientConfig)
_Made = TypeVar("_Made", Client, "Producer")


@dataclass(slots=True, eq=False)
class _CachedClient:
    make: Callable[[Any], Any]
    config: ClientConfig
    client: Any
    users: int = 0
    idle_since: float = 0.0


@dataclass(slots=True)
class _Kept:
    """The clients of one process. A forked child starts empty and does not touch the parent's."""

    pid: int
    entries: list[_CachedClient] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_watched: bool = False


class ClientCache:
    """Lends clients. Thread-safe, and safe to inherit through a fork.

    Args:
        idle_seconds: time after which an unused client is closed.
        clock: measures that time.
    """

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS, clock: Clock = SYSTEM_CLOCK) -> None:
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._by_process: list[_Kept] = [_Kept(os.getpid())]

    def borrow(self, make: Callable[[_Config], _Made], config: _Config) -> _Made:
        """Lend this process's client of a kind and configuration; return it with :meth:`give_back`.

        Args:
            make: the class, ``Client`` or ``Producer``, called if there is no client yet.
            config: its configuration; equal ones share a client.
        """
        kept = self._kept()
        with kept.lock:
            entry = next((e for e in kept.entries if e.make is make and e.config == config), None)
            if entry is None:
                client = make(config)
                client.start()
                entry = _CachedClient(make, config, client)
                kept.entries.append(entry)
                self._watch(kept)
            entry.users += 1
            made: _Made = entry.client
        return made

    def give_back(self, client: "Client | Producer") -> None:
        """Return a borrowed client; it stays open for the next borrower."""
        kept = self._kept()
        with kept.lock:
            for entry in kept.entries:
                if entry.client is client:
                    entry.users -= 1
                    entry.idle_since = self._clock.monotonic()

    def drop(self, client: "Client | Producer") -> None:
        """Close a client after a failure; the next borrower gets a new one."""
        kept = self._kept()
        with kept.lock:
            kept.entries = [entry for entry in kept.entries if entry.client is not client]
        client.close()

    def close_idle(self) -> None:
        """Close the clients that were unused for ``idle_seconds``."""
        kept, now = self._kept(), self._clock.monotonic()
        with kept.lock:
            idle = [e for e in kept.entries if not e.users and now - e.idle_since >= self._idle_seconds]
            kept.entries = [entry for entry in kept.entries if entry not in idle]
        for entry in idle:
            entry.client.close()
        if idle:
            log.info("idle_clients_closed", count=len(idle))

    def close_all(self) -> None:
        """Close every client of this process, even those in use."""
        kept = self._kept()
        with kept.lock:
            entries, kept.entries = kept.entries, []
        for entry in entries:
            entry.client.close()

    def __len__(self) -> int:
        return len(self._kept().entries)

    def _kept(self) -> _Kept:
        """Return this process's clients. The parent's stay referenced: collecting them closes its sockets."""
        if self._by_process[-1].pid != os.getpid():
            self._by_process.append(_Kept(os.getpid()))
        return self._by_process[-1]

    def _watch(self, kept: _Kept) -> None:
        """Check for idle clients regularly, on a separate thread, while there are any."""
        if kept.is_watched:
            return
        kept.is_watched = True
        timer = threading.Timer(self._idle_seconds / 2, self._close_idle_and_watch, [kept])
        timer.daemon = True
        timer.start()

    def _close_idle_and_watch(self, kept: _Kept) -> None:
        try:
            self.close_idle()
        except RocketMQError as error:  # it is removed in any case
            log.warning("idle_client_not_closed", reason=str(error))
        with kept.lock:
            kept.is_watched = False
            if kept.entries:
                self._watch(kept)


_CACHE: Final = ClientCache()


def client_of(config: ClientConfig) -> Client:
    """Return this process's client for a configuration, connected on first use; it is never closed as idle.

    If the use ends, prefer :func:`borrowed_client`.
    """
    return _CACHE.borrow(Client, config)


@contextmanager
def borrowed_client(config: ClientConfig) -> Iterator[Client]:
    """Lend this process's client for a configuration to a block."""
    with _lent(Client, config) as client:
        yield client


@contextmanager
def borrowed_producer(config: ProducerConfig) -> Iterator["Producer"]:
    """Lend this process's producer for a configuration to a block; an error in the block closes it."""
    with _lent(rmqtools.Producer, config) as producer:
        yield producer


@contextmanager
def _lent(make: Callable[[_Config], _Made], config: _Config) -> Iterator[_Made]:
    client = _CACHE.borrow(make, config)
    try:
        yield client
    except Exception:
        _CACHE.drop(client)
        raise
    finally:
        _CACHE.give_back(client)
