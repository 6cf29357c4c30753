import asyncio
from functools import partial

from rmqtools.testing.fake.timers import Timers
from tests.support.clock import ManualClock


async def test_what_is_due_happens_in_its_order_when_time_is_moved() -> None:
    timers, happened = Timers(ManualClock()), []
    for seconds in (3, 1, 2, 9):
        timers.after(seconds, partial(lambda name: happened.append((name, timers.monotonic())), seconds))
    begin = timers.monotonic()
    timers.advance(5)

    assert [(name, at - begin) for name, at in happened] == [(1, 1), (2, 2), (3, 3)]
    assert timers.monotonic() == begin + 5
    timers.close()


async def test_what_a_timer_begins_happens_too_if_it_is_due() -> None:
    timers, happened = Timers(ManualClock()), []
    timers.after(1, lambda: timers.after(1, lambda: happened.append("second")))
    timers.advance(2)

    assert happened == ["second"]


async def test_what_is_due_at_once_happens_in_the_loops_next_turn() -> None:
    timers, happened = Timers(), asyncio.Event()
    timers.after(0, happened.set)
    assert not happened.is_set()

    await asyncio.wait_for(happened.wait(), 5)


async def test_what_was_cancelled_or_closed_never_happens() -> None:
    timers, happened = Timers(ManualClock()), []
    timers.cancel(timers.after(1, lambda: happened.append("cancelled")))
    timers.after(2, lambda: happened.append("closed"))
    timers.close()
    timers.advance(5)

    assert happened == []
