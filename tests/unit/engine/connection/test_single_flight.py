"""Work that runs once for all concurrent callers."""

import asyncio
import gc

import pytest

from rmqtools.engine.connection.single_flight import SharedWork


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

    async def caller(self) -> asyncio.Task[str]:
        """Begin a call that wants it."""
        task = asyncio.ensure_future(self.shared.run("key", self._do))
        await asyncio.sleep(0)
        return task


async def test_a_failure_after_all_have_given_up_is_not_complained_about():
    work, complaints = Work(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    work.begun = 1  # so it will fail
    left = await work.caller()
    left.cancel()
    await asyncio.wait([left])
    work.gate.set()
    for _ in range(3):
        await asyncio.sleep(0)
    del left
    gc.collect()
    assert complaints == []


async def test_who_is_cancelled_while_it_is_closed_stays_cancelled():
    work = Work()
    waiting = await work.caller()
    closing = asyncio.ensure_future(work.shared.close())
    await asyncio.sleep(0)  # it has been ended, and nobody knows yet
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await closing
