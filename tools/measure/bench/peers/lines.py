"""The lines of the group ``peers``, and how its programs are started.

The native client (rocketmq-client-python, on a C++ library) speaks to the brokers as we do. The official gRPC
client speaks to a proxy, whose CPU no column has; its lines have no bar. A process has nothing but its
client, and sends or consumes, so that its memory is what that takes.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Final

from rmqtools.cluster.ports import LOOPBACK
from tests.support.native_client import NativeClient, install_peer
from tests.support.proxy import running_server
from tools.measure.bench.areas import Area, Side, sink
from tools.measure.bench.broker import Broker

BACKLOGS: Final = {"native": 50_000, "grpc": 10_000}  # messages; what is read in seconds
SIZE: Final = 1024


def peer_areas() -> list[Area]:
    """Bars over the native client are the project's promise."""
    areas = []
    for peer, bars in (("native", (1.3, 3.0, 3.0)), ("grpc", (None, None, None))):
        flight = 16 if peer == "native" else 256  # it has no asynchronous send, so threads
        push = (_consume("ours-push", "push", peer), _consume(f"{peer}-push", "push", peer))
        single = (_send("ours-send", "sync", 1), _send(f"{peer}-send", "sync", 1))
        many = (_send("ours", "aio-async", 256), _send(f"{peer}-send", "async", flight))
        way = "16 threads" if peer == "native" else "256"
        areas += [
            _area(f"one at a time, blocking, over {peer}", single, bar=bars[0]),
            _area(f"MB after sends one at a time, over {peer}", single, value="resident_mb"),
            _area(f"256 in flight, over {peer}, {way}", many, bar=bars[1]),
            _area(f"push with its start, over {peer}", push, bar=bars[2]),
            _area(f"MB after push, over {peer}", push, value="resident_mb"),
        ]
    simple = (_consume("ours-push", "push", "grpc"), _consume("grpc-simple", "simple", "grpc"))
    return [*areas, _area("push, over receive + ack of grpc", simple)]


def _area(name: str, sides: tuple[Side, Side], *, bar: float | None = None, value: str | None = None) -> Area:
    ours, theirs = sides
    return Area(name=name, ours=ours, theirs=(theirs,), bar=bar, value=value, group="peers")


def _send(program: str, mode: str, flight: int) -> Side:
    settings: dict[str, Any] = {"mode": mode, "topic": sink(SIZE), "size": SIZE, "flight": flight}
    return Side(program=program, work="send", settings=settings, sends_to=sink(SIZE))


def backlog(peer: str) -> str:
    """Return the topic with the messages that a peer and we consume."""
    return f"bench-peers-{peer}"


def fill_backlogs(broker: Broker) -> None:
    """Make them."""
    for peer, count in BACKLOGS.items():
        broker.fill(backlog(peer), size=SIZE, count=count)


def _consume(program: str, work: str, peer: str) -> Side:
    settings = {"topic": backlog(peer), "total": BACKLOGS[peer], "group": f"peer-{program}-@"}
    return Side(program=program, work=work, settings={**settings, "threads": 20, "batch": 1, "whole": 1})


def peer_commands(broker: Broker, stack: ExitStack) -> Mapping[str, Callable[[], list[str]]]:
    """Return the command of every program; the first of the gRPC client starts its proxy."""

    @cache
    def endpoint() -> str:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        server = stack.enter_context(running_server(broker.cluster, Path(folder)))
        return f"{LOOPBACK}:{server.settings['grpcServerPort']}"

    def ours() -> list[str]:
        return _command("ours", broker.name_server)

    def native() -> list[str]:
        client = NativeClient.installed("rocketmq-client-python")
        return _command("native", broker.name_server, str(client.packages), client.library)

    def grpc() -> list[str]:
        packages = install_peer("rocketmq-python-client", with_dependencies=True)
        home = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        return _command("grpc", endpoint(), str(packages), home)

    return {
        **dict.fromkeys(("ours-send", "ours-push"), ours),
        **dict.fromkeys(("native-send", "native-push"), native),
        **dict.fromkeys(("grpc-send", "grpc-push", "grpc-simple"), grpc),
    }


def _command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"tools.measure.bench.peers.{name}_program", *arguments]
