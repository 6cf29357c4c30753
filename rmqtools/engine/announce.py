"""Making brokers know a client before they need to reach it.

A broker forgets a client with the connection its heartbeat came on, so a new connection wants a new one; the
heartbeats every 30 s alone leave a gap in which check-backs and replies go nowhere.
"""

import asyncio

from rmqtools.engine.client import ClientCore
from rmqtools.engine.transport import Connection

_PAUSE_AFTER_SILENCE = 5.0  # seconds until a broker that did not answer a heartbeat is tried again


class Announcer:
    """Sends heartbeats to the brokers that have had none on the connection now open."""

    def __init__(self, client: ClientCore) -> None:
        self._client = client
        self._known: dict[str, Connection] = {}
        self._try_again_at: dict[str, float] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}

    async def announce(self, timeout: float) -> None:
        """Make sure that all known brokers know this client; wait at most ``timeout`` seconds for them.

        A broker that stays silent delays nobody again for some seconds; it is told as soon as it answers.
        """
        tasks = [
            self._task(broker_name, addr)
            for addr, broker_name in self._client.brokers().items()
            if self._must_be_told(addr)
        ]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)

    async def announce_forever(self, interval: float) -> None:
        """Look every ``interval`` seconds whether there is a broker to be told."""
        while True:
            await self.announce(interval)
            await asyncio.sleep(interval)

    async def close(self) -> None:
        """Drop what is under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _must_be_told(self, addr: str) -> bool:
        connection = self._known.get(addr)
        if connection is not None and connection.is_open:
            return False
        return self._client.clock.monotonic() >= self._try_again_at.get(addr, 0.0)

    def _task(self, broker_name: str, addr: str) -> asyncio.Task[None]:
        """The heartbeat under way to a broker; callers at the same time share it."""
        if (task := self._under_way.get(addr)) is None:
            task = self._under_way[addr] = asyncio.create_task(self._tell(broker_name, addr))
            task.add_done_callback(lambda _: self._under_way.pop(addr, None))
        return task

    async def _tell(self, broker_name: str, addr: str) -> None:
        connection = await self._client.send_heartbeat(broker_name, addr)
        if connection is None:
            self._try_again_at[addr] = self._client.clock.monotonic() + _PAUSE_AFTER_SILENCE
        else:
            self._known[addr] = connection
