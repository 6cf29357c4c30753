"""Background work of one owner: keeps every task, restarts failed loops, runs every closing step.

Closing does not wait for a task that closes its own consumer from a listener, nor for the task that awaits a
listener thread which does so: each would wait for the other.

``Background`` keeps the tasks of one owner and restarts a loop that failed. ``Closing`` runs the steps of a
shutdown once, all of them even if some raise, and every caller waits for the same run. A producer refuses new
calls, ends checks and requests, sends the messages that wait because of ``linger``, flushes traces, leaves
its group, then closes its client: loops, route requests, connections.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from rmqtools.log import get_logger

log = get_logger(__name__)

PAUSE_AFTER_ERROR = 1.0  # seconds until a loop that failed runs again


class Background:
    """Tasks of one owner (a client, a puller, a consumption), on one event loop.

    A task is kept until it ends; an error that is never awaited is logged with the task's name.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """The tasks that have not ended."""
        return set(self._tasks)

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``work`` once, until it ends or :meth:`stop` cancels it."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def spawn_loop(self, name: str, loop: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Run ``loop()`` until :meth:`stop`; log an error that ends it, and run it again after a pause.

        Args:
            name: the loop's name in logs.
            loop: makes the coroutine; called again after each error. A loop that returns has ended.
        """
        return self.spawn(name, _supervise(name, loop))

    def spawn_repeated(
        self, name: str, interval: float, work: Callable[[], Awaitable[None]]
    ) -> asyncio.Task[None]:
        """Run ``work()`` after every ``interval`` seconds; errors are handled as by :meth:`spawn_loop`."""
        return self.spawn_loop(name, lambda: _repeat(interval, work))

    async def stop(self) -> None:
        """Cancel all tasks and wait until they have ended. The calling task, if one of them, continues."""
        doomed = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in doomed:
            task.cancel()
        await asyncio.gather(*doomed, return_exceptions=True)

    async def join(self) -> None:
        """Wait until all tasks have ended on their own; the calling task is not waited for."""
        while doomed := [task for task in self._tasks if task is not asyncio.current_task()]:
            await asyncio.wait(doomed)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background_task_failed", task=task.get_name(), reason=repr(error), exc_info=error)


class MergedWork:
    """Work that many events request: it runs once for all requests that came before it began."""

    def __init__(self, background: Background, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._background = background
        self._name = name
        self._work = work
        self._is_requested = False
        self._task: asyncio.Task[None] | None = None

    def request(self) -> None:
        """Do the work: now, or as soon as the running one has ended."""
        self._is_requested = True
        if self._task is None or self._task.done():
            self._task = self._background.spawn(self._name, self._run())

    async def _run(self) -> None:
        while self._is_requested:
            self._is_requested = False
            await self._work()


async def _supervise(name: str, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
    while True:
        try:
            return await loop()
        except Exception as error:  # outermost frame of a background loop: the next run may succeed
            log.error("background_loop_failed", task=name, reason=repr(error), exc_info=error)
        await asyncio.sleep(PAUSE_AFTER_ERROR)


async def _repeat(interval: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(interval)
        await work()


async def run_steps(name: str, *steps: Callable[[], Awaitable[object]]) -> None:
    """Run every step of a shutdown in order, even after steps that raise.

    An error is logged under ``name``. After a cancellation the remaining steps still run, then it is raised.
    """
    cancelled: asyncio.CancelledError | None = None
    for step in steps:
        try:
            await step()
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception as error:  # outermost frame of closing: the later steps must run
            log.error(
                "closing_step_failed", owner=name, step=_name_of(step), reason=repr(error), exc_info=error
            )
    if cancelled is not None:
        raise cancelled


def _name_of(step: Callable[[], Awaitable[object]]) -> str:
    return getattr(step, "__qualname__", repr(step))


class Closing:
    """A shutdown that runs once, to its end.

    The first call starts it; every call waits for the same run. Cancelling a caller ends only its waiting.
    """

    def __init__(self, name: str, *steps: Callable[[], Awaitable[object]]) -> None:
        self._name = name
        self._steps = steps
        self._run: asyncio.Task[None] | None = None

    @property
    def has_begun(self) -> bool:
        """True if :meth:`wait` was called before."""
        return self._run is not None

    async def wait(self) -> None:
        """Begin the shutdown unless it has begun, and wait for its end."""
        if self._run is None:
            self._run = asyncio.create_task(run_steps(self._name, *self._steps), name=f"close {self._name}")
        await asyncio.shield(self._run)
