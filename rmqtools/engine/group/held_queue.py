"""Common part of pulled and popped queues: dropping a queue, waiting for its changes."""

import asyncio

from rmqtools.model.queue import MessageQueue


class HeldQueue:
    """A queue that a member holds. Used from the event loop only.

    Attributes:
        queue: the queue held.
        is_dropped: the queue is being given up; no more messages are fetched or handed out.
        is_locked: no other member gets its messages in order; always true where nothing is in order.
        burst_from: monotonic time from which on a listener's thread may fetch it; later after one in vain.
    """

    def __init__(self, queue: MessageQueue) -> None:
        self.queue = queue
        self.is_dropped = False
        self.is_locked = True
        self.burst_from = 0.0
        self._changed = asyncio.Event()

    def drop(self) -> None:
        """Stop handing out messages, and wake all tasks that wait for the queue."""
        self.is_dropped = True
        self.wake()

    def note_waiting(self) -> None:
        """Note that no request is sent on purpose; otherwise the queue would expire."""
        raise NotImplementedError

    def wake(self) -> None:
        """Let :meth:`changed` return."""
        self._changed.set()

    async def changed(self, timeout: float | None = None) -> None:
        """Wait until the queue changed since the last call, at most ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()
