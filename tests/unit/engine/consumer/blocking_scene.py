"""A push consumer with blocking listeners, and their threads."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from rmqtools.engine.consumer.listeners import Pace
from rmqtools.sync.listener_threads import ListenerThreads
from tests.unit.engine.consumer.push_scene import Scene, pushing

_NAME = "blocking-scene"
PATIENCE = 15.0  # seconds of a thread that waits for what must happen


class Crossings(ListenerThreads):
    """Listener threads that count what they are asked to run."""

    count = 0

    def call(self, *arguments):
        """See :class:`ListenerThreads`."""
        self.count += 1
        return super().call(*arguments)


@asynccontextmanager
async def blocking(listener, threads: int = 1, **settings: Any) -> AsyncIterator[tuple[Scene, Crossings]]:
    """A consumer whose listener is a function, and its threads."""
    pool = Crossings(threads, _NAME, pace=(pace := Pace()))
    try:
        async with pushing(consume_threads=threads, **settings) as scene:
            scene.listeners.pace = pace
            scene.listeners.block_on(pool.call)
            scene.listeners.register_blocking("T", listener)
            yield scene, pool
    finally:
        pool.close()
        for thread in threading.enumerate():  # their last results need the loop
            if thread.name.startswith(_NAME):
                await asyncio.to_thread(thread.join, PATIENCE)


async def until(true: Callable[[], object]) -> None:
    """Wait in the machine's time, since threads are at work."""
    while not true():
        await asyncio.to_thread(time.sleep, 0.001)


class Heard:
    """A listener that notes offsets, and stops at some of them until it may go on."""

    def __init__(self, *stops: int) -> None:
        self.offsets: list[int] = []
        self.reached = {offset: threading.Event() for offset in stops}
        self.go_on = threading.Event()

    def __call__(self, messages, context) -> None:
        offset = messages[0].queue_offset
        self.offsets.append(offset)
        if offset in self.reached:
            self.reached[offset].set()
            assert self.go_on.wait(PATIENCE)
