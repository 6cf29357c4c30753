"""A queue that a consumer pops from: how many of its messages are not acknowledged yet.

The broker keeps the offset, so there is nothing to commit. Source of the rule: PopProcessQueue (Java client).
"""

import asyncio

from rmqtools.clock import Clock
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import PopProcessQueueInfo

_PULL_MAX_IDLE_TIME = 120.0  # seconds; upstream PopProcessQueue.PULL_MAX_IDLE_TIME


class PopProcessQueue:
    """What is popped of one queue. Used from the event loop only.

    Attributes:
        queue: whose messages; with queue id -1 those of all the broker's queues of the topic.
        wait_ack_count: messages popped and neither acknowledged nor left to come again.
        is_dropped: no longer ours; nothing more is popped or handed out.
    """

    def __init__(self, queue: MessageQueue, clock: Clock) -> None:
        self.queue = queue
        self.wait_ack_count = 0
        self.is_dropped = False
        self.last_pop_ms = clock.now_ms()
        self._clock = clock
        self._last_pop = clock.monotonic()
        self._changed = asyncio.Event()

    @property
    def is_pull_expired(self) -> bool:
        """Whether nothing was asked for so long that the popping must have died."""
        return self._clock.monotonic() - self._last_pop > _PULL_MAX_IDLE_TIME

    def popped(self) -> None:
        """Note that messages were asked for now."""
        self._last_pop = self._clock.monotonic()
        self.last_pop_ms = self._clock.now_ms()

    def found(self, count: int) -> None:
        """So many messages have come."""
        self.wait_ack_count += count

    def settled(self, count: int) -> None:
        """So many are done with, whatever became of them."""
        self.wait_ack_count -= count
        self.wake()

    def drop(self) -> None:
        """Give the queue up. Whoever waits for it wakes."""
        self.is_dropped = True
        self.wake()

    def info(self) -> PopProcessQueueInfo:
        """What administrators are told."""
        return PopProcessQueueInfo(
            wait_ack_count=self.wait_ack_count, dropped=self.is_dropped, last_pop_timestamp=self.last_pop_ms
        )

    def wake(self) -> None:
        """Let :meth:`changed` return."""
        self._changed.set()

    async def changed(self, timeout: float) -> None:
        """Wait until something has happened since the last look, at most ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()
