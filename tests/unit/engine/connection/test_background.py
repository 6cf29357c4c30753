import asyncio

import pytest

from rmqtools.engine.connection.background import Background, run_steps


async def test_a_loop_that_fails_is_logged_and_runs_again(caplog):
    runs: list[int] = []

    async def loop() -> None:
        runs.append(len(runs))
        if len(runs) < 3:
            raise ZeroDivisionError

    await Background().spawn_loop("polling", loop)
    assert runs == [0, 1, 2]
    assert caplog.text.count("background_loop_failed task='polling'") == 2


async def test_work_that_is_repeated_survives_its_errors(caplog):
    owner, now, runs = Background(), asyncio.get_running_loop().time, list[float]()
    began = now()

    async def work() -> None:
        runs.append(now() - began)
        if len(runs) == 1:
            raise ZeroDivisionError

    owner.spawn_repeated("tidying", 5.0, work)
    await asyncio.sleep(18)
    await owner.stop()
    assert runs == pytest.approx([5, 11, 16], abs=0.1)  # a second later after the error
    assert caplog.text.count("background_loop_failed") == 1


async def test_stop_ends_all_tasks_but_the_one_that_calls_it():
    owner, ended = Background(), list[str]()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")

    async def stops() -> None:
        await asyncio.sleep(0)
        await owner.stop()
        ended.append("stops")

    owner.spawn("waits", waits())
    await owner.spawn("stops", stops())
    assert ended == ["waits", "stops"]


async def test_join_waits_for_tasks_that_tasks_have_begun():
    owner, ended = Background(), list[str]()

    async def second() -> None:
        await asyncio.sleep(0)
        ended.append("second")

    async def first() -> None:
        await asyncio.sleep(0)
        owner.spawn("second", second())

    owner.spawn("first", first())
    await owner.join()
    assert ended == ["second"]


async def test_every_step_of_a_shutdown_runs_whatever_an_earlier_one_raises(caplog):
    ran: list[str] = []

    async def fails() -> None:
        raise ZeroDivisionError

    async def is_cancelled() -> None:
        raise asyncio.CancelledError

    async def last() -> None:
        ran.append("last")

    with pytest.raises(asyncio.CancelledError):
        await run_steps("client", fails, is_cancelled, last)
    await run_steps("client", fails, last)

    assert ran == ["last", "last"]
    assert caplog.text.count("closing_step_failed owner='client'") == 2
