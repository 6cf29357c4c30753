"""Push consumers whose listeners are functions, called on threads or by coroutines."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

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


@asynccontextmanager
async def on_a_thread(listener, **settings: Any) -> AsyncIterator[Scene]:
    """A consumer with a thread that calls the function."""
    async with blocking(listener, **settings) as (scene, _):
        yield scene


@asynccontextmanager
async def in_a_coroutine(listener, **settings: Any) -> AsyncIterator[Scene]:
    """A consumer with a coroutine that calls the function, which does not block it."""
    async with pushing(coroutine_of(listener), consume_threads=1, **settings) as scene:
        yield scene


def coroutine_of(listener) -> Callable[..., Any]:
    """Return a coroutine listener that does what the function does, and waits without blocking."""

    async def listen(messages, context):
        answer = listener.begin(messages) if isinstance(listener, Heard) else listener(messages, context)
        if isinstance(answer, threading.Event):
            await until(answer.is_set)
            return listener.answer
        return answer

    return listen


WAYS = [pytest.param(in_a_coroutine, id="coroutine"), pytest.param(on_a_thread, id="thread")]
in_both_ways = pytest.mark.parametrize("consuming", WAYS)


async def until(true: Callable[[], object]) -> None:
    """Wait in the machine's time, since threads are at work."""
    while not true():
        await asyncio.to_thread(time.sleep, 0.001)


class Heard:
    """A listener that notes offsets, and stops at some until it may go on; then it returns ``answer``."""

    def __init__(self, *stops: int, answer: object = None) -> None:
        self.offsets: list[int] = []
        self.answer = answer
        self.reached = {offset: threading.Event() for offset in stops}
        self.go_on = threading.Event()

    def begin(self, messages) -> threading.Event | None:
        """Note the call; return what it has to wait for."""
        offset = messages[0].queue_offset
        self.offsets.append(offset)
        if offset not in self.reached:
            return None
        self.reached[offset].set()
        return self.go_on

    def __call__(self, messages, context) -> object:
        if (go_on := self.begin(messages)) is None:
            return None
        assert go_on.wait(PATIENCE)
        return self.answer
