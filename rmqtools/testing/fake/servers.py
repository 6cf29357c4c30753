"""The listening servers of a fake cluster, their received requests, and their faults."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing.fake.broker import Broker
from rmqtools.testing.fake.faults import Fault, Reaction, topic_of
from rmqtools.testing.fake.name_server import NameServer, Registered
from rmqtools.testing.fake.server import Answer, Peer, Server
from rmqtools.testing.fake.state import State
from rmqtools.testing.fake.timers import Timers

MAX_REQUESTS = 10_000
MAX_BYTES = 64 * 1024 * 1024  # of bodies


class RequestLog:
    """The newest requests with the names of their servers, bounded in number and bytes; oldest first."""

    def __init__(self) -> None:
        self._entries: deque[tuple[str, RemotingCommand]] = deque()
        self._bytes = 0

    def add(self, server: str, request: RemotingCommand) -> None:
        """Add a request, and drop the oldest ones above the limits."""
        self._entries.append((server, request))
        self._bytes += len(request.body)
        while len(self._entries) > MAX_REQUESTS or (self._bytes > MAX_BYTES and len(self._entries) > 1):
            self._bytes -= len(self._entries.popleft()[1].body)

    def find(self, code: int | None, server: str | None, topic: str | None) -> list[RemotingCommand]:
        """Return the requests with a code, to a server, about a topic; None: any."""
        return [
            request
            for name, request in self._entries
            if code in (None, request.code) and server in (None, name) and topic in (None, topic_of(request))
        ]


NAME_SERVER = "name-server"
"""Name of the first name server in faults and requests; the next ones are name-server-1, -2."""


def slave_name(master: str, broker_id: int) -> str:
    """Name of a slave in faults and requests, such as ``broker-a/1``. Id 0 gives the master's name."""
    return f"{master}/{broker_id}" if broker_id else master


@dataclass
class _Backlog:
    """Events of a server that stands still, in their order."""

    requests: list[tuple[RemotingCommand, Peer]] = field(default_factory=list)
    closed: list[Peer] = field(default_factory=list)


def _forget_nothing(_: Peer) -> None:
    """Do nothing: name servers keep no table of connections."""


_SCAN_SECONDS = 120.0  # until a broker forgets a closed connection whose heartbeat it handled too late

_Handle = Callable[[RemotingCommand, Peer], Answer]


class Servers:
    """The servers of a cluster by name. All methods run on its loop."""

    def __init__(
        self, brokers: Mapping[str, Broker], timers: Timers, *, slaves: int, name_servers: int
    ) -> None:
        self._timers = timers
        self._known = {
            name: Registered(cluster=broker.state.cluster, topics=broker.state.topics)
            for name, broker in brokers.items()
        }
        self._by_name: dict[str, Server] = {}
        self._forget: dict[str, Callable[[Peer], None]] = {}
        self._frozen: dict[str, _Backlog] = {}
        self._stops: Counter[str] = Counter()
        self._states: dict[str, State] = {}
        self._places: dict[str, tuple[str, int]] = {}  # of a broker's server: its broker name and broker id
        for master, broker in brokers.items():
            for broker_id in range(slaves + 1):
                name = slave_name(master, broker_id)
                self._places[name] = (master, broker_id)
                server = broker.slave(partial(self._is_up, master)) if broker_id else broker
                self._states[name] = server.state
                self._by_name[name] = self._server(name, server.handle, server.forget)
        for number in range(name_servers):
            name = f"{NAME_SERVER}-{number}" if number else NAME_SERVER
            self._by_name[name] = self._server(name, NameServer(self._known).handle)
        self.faults: list[Fault] = []
        self.requests = RequestLog()

    @property
    def name_server(self) -> str:
        """The addresses of all name servers."""
        return ";".join(self.addr(name) for name in self._by_name if name not in self._places)

    def addr(self, name: str) -> str:
        """Return the address of one server."""
        return self._by_name[name].addr

    def start(self) -> None:
        """Make all servers listen."""
        for name in self._by_name:
            self.restart(name)

    async def close(self) -> None:
        """Break all connections and stop listening."""
        for server in self._by_name.values():
            await server.close()

    def stop(self, name: str, *, in_route: bool) -> None:
        """See :meth:`FakeCluster.stop`."""
        self._by_name[name].stop()
        self._stops[name] += 1
        if (backlog := self._frozen.pop(name, None)) is not None:  # its buffers are gone
            for peer in backlog.closed:
                self._forget[name](peer)
        if name in self._places and not in_route:
            master, broker_id = self._places[name]
            self._known[master].addrs.pop(broker_id, None)

    def restart(self, name: str) -> None:
        """See :meth:`FakeCluster.restart`."""
        self._by_name[name].start()
        if name in self._places:
            self.announce(name, self.addr(name))
        if (state := self._states.get(name)) is not None:
            state.locks.clear()
            state.boot_timestamp_ms = max(state.boot_timestamp_ms + 1, self._timers.now_ms())

    def _is_up(self, name: str) -> bool:
        return self._by_name[name].is_listening and name not in self._frozen

    def announce(self, name: str, addr: str) -> None:
        """See :meth:`FakeCluster.announce`."""
        master, broker_id = self._places[name]
        self._known[master].addrs[broker_id] = addr

    def disconnect(self, name: str) -> None:
        """See :meth:`FakeCluster.disconnect`."""
        self._by_name[name].disconnect()

    def freeze(self, name: str) -> None:
        """See :meth:`FakeCluster.freeze`."""
        self._by_name[name].freeze()
        self._frozen.setdefault(name, _Backlog())

    def thaw(self, name: str) -> None:
        """See :meth:`FakeCluster.thaw`."""
        if (backlog := self._frozen.pop(name, None)) is None:
            return
        self._by_name[name].thaw()
        forget = self._forget[name]
        for peer in backlog.closed:
            forget(peer)
            self._timers.after(_SCAN_SECONDS, partial(forget, peer))
        for request, peer in backlog.requests:
            self._by_name[name].received(request, peer)

    def say(self, name: str, data: bytes) -> None:
        """See :meth:`FakeCluster.say`."""
        self._by_name[name].say(data)

    def _server(self, name: str, handle: _Handle, forget: Callable[[Peer], None] = _forget_nothing) -> Server:
        self._forget[name] = forget

        def closed(peer: Peer) -> None:
            backlog = self._frozen.get(name)
            backlog.closed.append(peer) if backlog else forget(peer)

        return Server(lambda request, peer: self._receive(name, handle, request, peer), on_close=closed)

    def _receive(self, name: str, handle: _Handle, request: RemotingCommand, peer: Peer) -> Answer:
        if request.is_response:
            return None
        if (backlog := self._frozen.get(name)) is not None:
            backlog.requests.append((request, peer))
            return None
        self.requests.add(name, request)
        return self._answer(name, handle, request, peer, iter([*self.faults]))

    def _answer(
        self, name: str, handle: _Handle, request: RemotingCommand, peer: Peer, faults: Iterator[Fault]
    ) -> Answer:
        """Handle a request that these faults may affect."""
        fault = next((fault for fault in faults if fault.strike(name, request)), None)
        if fault is None:
            return handle(request, peer)

        def struck() -> Answer:
            outcome = fault.outcome(request)
            if not isinstance(outcome, Reaction):
                return outcome
            if outcome is Reaction.PASS:
                return self._answer(name, handle, request, peer, faults)
            if outcome is Reaction.DISCONNECT:
                peer.drop()
            elif outcome is Reaction.SWALLOW:
                handle(request, peer)
            return None

        if not fault.delay:
            return struck()
        stops = self._stops[name]

        def late() -> None:
            if self._stops[name] == stops:  # else it was in the buffers of a process that has ended
                peer.answer(request, struck())

        self._timers.after(fault.delay, late)
        return None
