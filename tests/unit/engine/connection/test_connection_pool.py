"""The pool of blocking connections: who gets one, which are closed, and when."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from rmqtools.clock import SystemClock
from rmqtools.config import ClientConfig
from rmqtools.engine.connection.blocking_connection import BlockingConnection
from rmqtools.engine.connection.connection_pool import (
    FRESH_SECONDS,
    IDLE_SECONDS,
    MAX_CONNECTIONS,
    ConnectionPool,
)
from rmqtools.engine.connection.transport import Connection
from rmqtools.testing.fake.server import Peer
from tests.support.scripted_peer import ScriptedPeer


class Hours(SystemClock):
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed


def with_pool(use: Callable[[ConnectionPool, "Scene"], Awaitable[None] | None]) -> None:
    """Run ``use(pool, scene)`` beside a server on loopback; the pool ends empty."""

    async def main() -> None:
        async with ScriptedPeer().serving() as peer:
            scene = Scene(peer)
            pool = ConnectionPool(ClientConfig(name_server=peer.addr), scene.clock)
            done = use(pool, scene)
            if done is not None:
                await done
            pool.cut()
            assert len(pool) == 0
            for beside in scene.opened:
                beside.abort()

    asyncio.run(asyncio.wait_for(main(), 20))


class Scene:
    """The server, the clock, and the loop's connections."""

    def __init__(self, peer: ScriptedPeer) -> None:
        self.peer = peer
        self.clock = Hours()
        self.opened: list[Connection] = []

    async def beside(self) -> Connection:
        """Another connection of the loop's."""
        host, _, port = self.peer.addr.partition(":")
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(self.peer.addr, on_request=_nothing, max_frame_bytes=2**24), host, int(port)
        )
        self.opened.append(connection)
        return connection


async def _nothing(request, addr) -> None:
    return None


def take(pool: ConnectionPool, beside: Connection) -> BlockingConnection:
    connection = pool.take(beside, 3.0)
    assert connection is not None
    return connection


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - there is no event, only loop iterations
        await asyncio.sleep(0)


def test_a_connection_that_was_given_back_is_lent_again():
    async def use(pool, scene):
        beside = await scene.beside()
        first = take(pool, beside)
        pool.give_back(first)
        assert take(pool, beside) is first
        pool.give_back(first)

    with_pool(use)


def test_threads_that_send_at_the_same_time_get_one_each_and_no_more_than_the_limit():
    async def use(pool, scene):
        beside = await scene.beside()
        lent = [take(pool, beside) for _ in range(MAX_CONNECTIONS)]
        assert len(set(lent)) == len(pool) == MAX_CONNECTIONS
        assert pool.take(beside, 3.0) is None
        for connection in lent:
            pool.give_back(connection)

    with_pool(use)


def test_a_spent_connection_is_closed():
    async def use(pool, scene):
        beside = await scene.beside()
        spent = take(pool, beside)
        spent.is_spent = True
        pool.give_back(spent)
        assert len(pool) == 0
        fresh = take(pool, beside)
        assert fresh is not spent
        pool.give_back(fresh)

    with_pool(use)


@pytest.mark.parametrize(
    "trouble", [pytest.param(lambda peer: peer.write(b"x"), id="said"), pytest.param(Peer.drop, id="closed")]
)
def test_one_whose_peer_has_said_something_or_has_closed_is_not_lent(trouble):
    async def use(pool, scene):
        beside = await scene.beside()
        connection = take(pool, beside)
        pool.give_back(connection)
        await until(lambda: scene.peer.accepted == 2)
        trouble(scene.peer.peers[-1])
        await until(lambda: not connection.is_quiet())
        scene.clock.passed += FRESH_SECONDS
        fresh = take(pool, beside)
        assert fresh is not connection
        pool.give_back(fresh)

    with_pool(use)


def test_one_that_was_used_a_moment_ago_is_not_looked_at(monkeypatch):
    looked_at = []
    monkeypatch.setattr(BlockingConnection, "is_quiet", lambda one: not looked_at.append(one))

    async def use(pool, scene):
        beside = await scene.beside()
        connection = take(pool, beside)
        for passed, looks in ((FRESH_SECONDS / 2, 0), (2 * FRESH_SECONDS, 1)):
            pool.give_back(connection)
            scene.clock.passed += passed
            assert take(pool, beside) is connection
            assert len(looked_at) == looks
        pool.give_back(connection)

    with_pool(use)


def test_connections_end_with_the_loops_connection_that_they_were_made_beside():
    async def use(pool, scene):
        old = take(pool, await scene.beside())
        pool.give_back(old)
        fresh = take(pool, await scene.beside())
        assert fresh is not old
        assert len(pool) == 1
        pool.give_back(fresh)

    with_pool(use)


def test_idle_connections_are_closed_after_a_minute_and_those_in_use_are_not():
    async def use(pool, scene):
        beside = await scene.beside()
        used, idle, lent = (take(pool, beside) for _ in range(3))
        pool.give_back(idle)
        scene.clock.passed += IDLE_SECONDS / 2
        pool.give_back(used)
        pool.close_idle()
        assert len(pool) == 3
        scene.clock.passed += IDLE_SECONDS / 2
        pool.close_idle()
        assert len(pool) == 2
        assert take(pool, beside) is used
        pool.give_back(used)
        pool.give_back(lent)

    with_pool(use)


def test_a_peer_that_takes_no_further_connection_is_left_to_the_loops_for_a_second():
    async def use(pool, scene):
        beside = await scene.beside()
        host, port = beside.peer
        beside.peer = (host, 1)  # nobody listens there
        assert pool.take(beside, 3.0) is None
        beside.peer = (host, port)
        assert pool.take(beside, 3.0) is None
        scene.clock.passed += 1.0
        pool.give_back(take(pool, beside))

    with_pool(use)


@pytest.mark.parametrize("name", ["is_tls", "peer"])
def test_none_is_made_beside_a_connection_with_tls_or_without_an_address(name):
    async def use(pool, scene):
        beside = await scene.beside()
        setattr(beside, name, {"is_tls": True, "peer": None}[name])
        assert pool.take(beside, 3.0) is None

    with_pool(use)


def test_closing_waits_until_lent_connections_are_given_back():
    async def use(pool, scene):
        beside = await scene.beside()
        lent = take(pool, beside)
        pool.cut()
        assert not lent.is_quiet()
        assert len(pool) == 1
        thread = threading.Thread(target=pool.give_back, args=(lent,))
        thread.start()
        pool.join(20.0)
        assert len(pool) == 0
        thread.join()
        assert pool.take(beside, 3.0) is None

    with_pool(use)
