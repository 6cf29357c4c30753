"""An event loop on its own daemon thread, for blocking tests."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from rmqtools.sync.greenlets import are_threads_greenlets, new_cooperative_loop, run_forever

T = TypeVar("T")
_SECONDS = 30.0  # every call of a fake cluster is faster


class LoopThread:
    """Runs from :meth:`start` to :meth:`stop`."""

    def __init__(self, name: str) -> None:
        patched = are_threads_greenlets()
        self.loop = new_cooperative_loop() if patched else asyncio.new_event_loop()
        run = partial(run_forever, self.loop) if patched else self.loop.run_forever
        self._thread = threading.Thread(target=run, name=name, daemon=True)

    def start(self) -> None:
        """Start the loop."""
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(_SECONDS)

    def stop(self) -> None:
        """End the loop and the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_SECONDS)
        self.loop.close()


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[[], T]) -> T:
    """Call a function on a running loop, from any thread, and wait for its result."""
    try:
        if asyncio.get_running_loop() is loop:
            return function()
    except RuntimeError:  # no loop runs on this thread
        pass

    async def called() -> T:
        return function()

    return asyncio.run_coroutine_threadsafe(called(), loop).result(_SECONDS)
