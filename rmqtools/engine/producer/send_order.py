"""Allows one request per queue on the wire, first come, first served: brokers reorder pipelined ones."""

import asyncio
from collections import defaultdict

from rmqtools.model.queue import MessageQueue


class QueueLines:
    """One lock per queue, for its request on the wire.

    Locks are granted in the order of requests, even if a waiting request was cancelled: :class:`asyncio.Lock`
    is fair. Used from one event loop.
    """

    def __init__(self) -> None:
        self._by_queue: defaultdict[MessageQueue, asyncio.Lock] = defaultdict(asyncio.Lock)

    def __len__(self) -> int:
        """Return the number of queues used."""
        return len(self._by_queue)

    def of(self, queue: MessageQueue) -> asyncio.Lock:
        """Return the lock of a queue."""
        return self._by_queue[queue]
