"""First come, first served, for each queue."""

import asyncio
from dataclasses import dataclass

from rmqtools.model.queue import MessageQueue


@dataclass(slots=True)
class Turn:
    """A place in a queue's line. Whoever takes one must end it."""

    previous: asyncio.Future[None] | None
    mine: asyncio.Future[None]

    async def wait(self) -> None:
        """Wait until all who came before are done."""
        if self.previous is not None:
            await asyncio.wait({self.previous})

    def end(self) -> None:
        """Let the next one go on; not before those in front, for one who waits no longer."""
        if self.previous is None or self.previous.done():
            self.mine.set_result(None)
        else:
            self.previous.add_done_callback(lambda _: self.mine.set_result(None))


class Turns:
    """The lines of all queues. Places are given in the order of the calls, without waiting."""

    def __init__(self) -> None:
        self._last: dict[MessageQueue, asyncio.Future[None]] = {}

    def take(self, queue: MessageQueue) -> Turn:
        """The place behind all who came before."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turn = Turn(self._last.get(queue), mine)
        self._last[queue] = mine
        return turn
