"""Work that runs once for all concurrent callers."""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest

from rmqtools.engine.connection.single_flight import SharedWork
from rmqtools.errors import ClientStateError
from tests.support.scripted_peer import run


class Work:
    """Counts its starts, and ends when the test requests it."""

    def __init__(self) -> None:
        self.begun = 0
        self.shared = SharedWork[str]()
        self.gate = asyncio.Event()

    async def _do(self) -> str:
        self.begun += 1
        await self.gate.wait()
        if self.begun > 1:
            raise OSError("the second fails")
        return "done"

    def wanted(self) -> asyncio.Task[str]:
        """One caller."""
        return asyncio.ensure_future(self.shared.run("key", self._do))


def scene(test: Callable[[Work], Awaitable[None]]) -> Callable[[], None]:
    """A test on an event loop."""

    def on_a_loop() -> None:
        async def scenario() -> None:
            await test(Work())

        run(scenario)

    on_a_loop.__name__ = test.__name__
    return on_a_loop


@scene
async def test_it_is_done_once_for_all_and_again_for_who_comes_later(work):
    both = work.wanted(), work.wanted()
    work.gate.set()
    assert [*await asyncio.gather(*both)] == ["done", "done"]
    assert work.begun == 1
    with pytest.raises(OSError, match="the second fails"):
        await work.wanted()


@scene
async def test_who_gives_up_does_not_end_it_for_others(work):
    left, waiting = work.wanted(), work.wanted()
    await asyncio.sleep(0)
    left.cancel()
    work.gate.set()
    assert await waiting == "done"
    with pytest.raises(asyncio.CancelledError):
        await left


@scene
async def test_a_failure_after_all_have_given_up_is_not_complained_about(work):
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    work.begun = 1  # so it will fail
    left = work.wanted()
    await asyncio.sleep(0)
    (doing,) = work.shared._tasks.values()
    left.cancel()
    await asyncio.wait([left])
    await asyncio.sleep(0)
    work.gate.set()
    await asyncio.wait([doing])
    del doing, left
    gc.collect()
    assert complaints == []


@scene
async def test_closing_ends_it_and_nothing_is_begun_any_more(work):
    waiting = work.wanted()
    await asyncio.sleep(0)
    await work.shared.close()
    with pytest.raises(ClientStateError, match="closed meanwhile"):
        await waiting
    with pytest.raises(ClientStateError, match="is closed"):
        await work.wanted()
    await work.shared.close()


@scene
async def test_who_is_cancelled_while_it_is_closed_stays_cancelled(work):
    waiting = work.wanted()
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(work.shared.close())
    await asyncio.sleep(0)  # it has been ended, and nobody knows yet
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await closing
