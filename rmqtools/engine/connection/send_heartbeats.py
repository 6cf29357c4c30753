"""Sends heartbeats to brokers early enough that they know a client before they need to reach it.

A broker forgets a client when the connection of its heartbeats closes, so a new connection needs a new
heartbeat. With one heartbeat every 30 s alone, check-backs and replies would be lost in between.
"""

import asyncio

from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.transport import Connection

_PAUSE_AFTER_SILENCE = 5.0  # seconds until a broker that did not answer a heartbeat gets another


class Announcer:
    """Sends heartbeats to brokers that have received none on the open connection."""

    def __init__(self, client: ClientCore) -> None:
        self._client = client
        self._known: dict[str, Connection] = {}
        self._try_again_at: dict[str, float] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._telling = Background()
        self._closed = False

    async def announce(self, timeout: float) -> None:
        """Send heartbeats to all known brokers that need one; wait at most ``timeout`` seconds for answers.

        A broker that does not answer delays no further caller for some seconds. It gets a heartbeat as soon
        as it answers again.
        """
        tasks = [
            self._task(broker_name, addr)
            for addr, broker_name in self._client.brokers().items()
            if not self._closed and self._must_be_told(addr)
        ]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)

    async def announce_forever(self, interval: float) -> None:
        """Check every ``interval`` seconds whether a broker needs a heartbeat."""
        while True:
            await self.announce(interval)
            await asyncio.sleep(interval)

    async def close(self) -> None:
        """Cancel pending heartbeats, and send no more."""
        self._closed = True
        await self._telling.stop()

    def _must_be_told(self, addr: str) -> bool:
        connection = self._known.get(addr)
        if connection is not None and connection.is_open:
            return False
        return self._client.clock.monotonic() >= self._try_again_at.get(addr, 0.0)

    def _task(self, broker_name: str, addr: str) -> asyncio.Task[None]:
        """Return the pending heartbeat to a broker; concurrent callers share it."""
        if (task := self._under_way.get(addr)) is None:
            sending = self._send_heartbeat(broker_name, addr)
            task = self._under_way[addr] = self._telling.spawn(f"announce to {addr}", sending)
            task.add_done_callback(lambda _: self._under_way.pop(addr, None))
        return task

    async def _send_heartbeat(self, broker_name: str, addr: str) -> None:
        connection = await self._client.send_heartbeat(broker_name, addr)
        if connection is None:
            self._try_again_at[addr] = self._client.clock.monotonic() + _PAUSE_AFTER_SILENCE
        else:
            self._known[addr] = connection
