"""The pool of blocking connections: who gets one, which are closed, and when."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

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
from tests.support.clock import ManualClock
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.connection.test_transport import ignore
from tests.unit.engine.consumer.push_scene import until


class Scene:
    """A pool, its clock, a server, and the loop's connections to it; ``beside`` is the first of these."""

    def __init__(self, peer: ScriptedPeer) -> None:
        self.peer = peer
        self.clock = ManualClock(0)
        self.pool = ConnectionPool(ClientConfig(name_server=peer.addr), self.clock)
        self.opened: list[Connection] = []

    @property
    def beside(self) -> Connection:
        return self.opened[0]

    async def open(self) -> Connection:
        """Open another connection of the loop's."""
        host, _, port = self.peer.addr.partition(":")
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(self.peer.addr, on_request=ignore, max_frame_bytes=2**24), host, int(port)
        )
        self.opened.append(connection)
        return connection

    def take(self, beside: Connection | None = None) -> Any:
        return self.pool.take(beside or self.beside, 3.0)


@asynccontextmanager
async def pooling() -> AsyncIterator[Scene]:
    """A pool that ends empty, beside a server on loopback."""
    async with ScriptedPeer().serving() as peer:
        scene = Scene(peer)
        await scene.open()
        yield scene
        scene.pool.cut()
        assert len(scene.pool) == 0
        for connection in scene.opened:
            connection.abort()


async def test_a_connection_that_was_given_back_is_lent_again():
    async with pooling() as scene:
        first = scene.take()
        scene.pool.give_back(first)
        assert scene.take() is first
        scene.pool.give_back(first)


async def test_threads_that_send_at_the_same_time_get_one_each_and_no_more_than_the_limit():
    async with pooling() as scene:
        lent = [scene.take() for _ in range(MAX_CONNECTIONS)]
        assert len({*lent} - {None}) == len(scene.pool) == MAX_CONNECTIONS
        assert scene.take() is None
        for connection in lent:
            scene.pool.give_back(connection)


async def test_a_spent_connection_is_closed():
    async with pooling() as scene:
        spent = scene.take()
        spent.is_spent = True
        scene.pool.give_back(spent)
        assert len(scene.pool) == 0
        fresh = scene.take()
        assert fresh is not spent
        scene.pool.give_back(fresh)


@pytest.mark.parametrize(
    "trouble", [pytest.param(lambda peer: peer.write(b"x"), id="said"), pytest.param(Peer.drop, id="closed")]
)
async def test_one_whose_peer_has_said_something_or_has_closed_is_not_lent(trouble):
    async with pooling() as scene:
        connection = scene.take()
        scene.pool.give_back(connection)
        await until(lambda: scene.peer.accepted == 2)
        trouble(scene.peer.peers[-1])
        await until(lambda: not connection.is_quiet())
        scene.clock.advance(FRESH_SECONDS)
        fresh = scene.take()
        assert fresh is not connection
        scene.pool.give_back(fresh)


async def test_one_that_was_used_a_moment_ago_is_not_looked_at(monkeypatch):
    looked_at = []
    monkeypatch.setattr(BlockingConnection, "is_quiet", lambda one: not looked_at.append(one))

    async with pooling() as scene:
        connection = scene.take()
        for passed, looks in ((FRESH_SECONDS / 2, 0), (2 * FRESH_SECONDS, 1)):
            scene.pool.give_back(connection)
            scene.clock.advance(passed)
            assert scene.take() is connection
            assert len(looked_at) == looks
        scene.pool.give_back(connection)


async def test_connections_end_with_the_loops_connection_that_they_were_made_beside():
    async with pooling() as scene:
        old = scene.take()
        scene.pool.give_back(old)
        fresh = scene.take(await scene.open())
        assert fresh is not old
        assert len(scene.pool) == 1
        scene.pool.give_back(fresh)


async def test_idle_connections_are_closed_after_a_minute_and_those_in_use_are_not():
    async with pooling() as scene:
        used, idle, lent = (scene.take() for _ in range(3))
        scene.pool.give_back(idle)
        scene.clock.advance(IDLE_SECONDS / 2)
        scene.pool.give_back(used)
        scene.pool.close_idle()
        assert len(scene.pool) == 3
        scene.clock.advance(IDLE_SECONDS / 2)
        scene.pool.close_idle()
        assert len(scene.pool) == 2
        assert scene.take() is used
        scene.pool.give_back(used)
        scene.pool.give_back(lent)


async def test_a_peer_that_takes_no_further_connection_is_left_to_the_loops_for_a_second():
    async with pooling() as scene:
        there = scene.beside.peer
        scene.beside.peer = ("127.0.0.1", 1)  # nobody listens there
        assert scene.take() is None
        scene.beside.peer = there
        assert scene.take() is None
        scene.clock.advance(1.0)
        scene.pool.give_back(scene.take())


@pytest.mark.parametrize(("name", "value"), [("is_tls", True), ("peer", None)])
async def test_none_is_made_beside_a_connection_with_tls_or_without_an_address(name, value):
    async with pooling() as scene:
        setattr(scene.beside, name, value)
        assert scene.take() is None


async def test_closing_waits_until_lent_connections_are_given_back():
    async with pooling() as scene:
        lent = scene.take()
        scene.pool.cut()
        assert not lent.is_quiet()
        assert len(scene.pool) == 1
        thread = threading.Thread(target=scene.pool.give_back, args=(lent,))
        thread.start()
        scene.pool.join(20.0)
        assert len(scene.pool) == 0
        thread.join()
        assert scene.take() is None
