import asyncio

import pytest

from rmqtools.engine.connection import background
from rmqtools.engine.connection.background import Background, Closing, run_steps
from tests.support.scripted_peer import run


async def test_a_loop_that_fails_is_logged_and_runs_again(caplog, monkeypatch):
    monkeypatch.setattr(background, "PAUSE_AFTER_ERROR", 0.0)
    runs: list[int] = []

    async def loop() -> None:
        runs.append(len(runs))
        if len(runs) < 3:
            raise ZeroDivisionError

    await Background().spawn_loop("polling", loop)
    assert runs == [0, 1, 2]
    assert caplog.text.count("background_loop_failed") == 2
    assert "polling" in caplog.text


async def test_a_task_that_fails_is_logged_with_its_name(caplog):
    async def fails() -> None:
        raise ZeroDivisionError

    owner = Background()
    task = owner.spawn("once", fails())
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert len(owner) == 0
    assert "background_task_failed" in caplog.text
    assert "once" in caplog.text


async def test_stop_ends_all_tasks_but_the_one_that_calls_it():
    ended = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")

    owner = Background()
    owner.spawn("waits", waits())

    async def stops() -> None:
        await asyncio.sleep(0)
        await owner.stop()
        ended.append("stops")

    await owner.spawn("stops", stops())
    assert ended == ["waits", "stops"]


async def test_join_waits_for_tasks_that_tasks_have_begun():
    ended = []

    owner = Background()

    async def second() -> None:
        await asyncio.sleep(0)
        ended.append("second")

    async def first() -> None:
        await asyncio.sleep(0)
        owner.spawn("second", second())

    owner.spawn("first", first())
    await owner.join()
    assert ended == ["second"]


async def _fails() -> None:
    raise ZeroDivisionError


def test_every_step_runs_whatever_the_others_raise(caplog):
    done = []

    async def step() -> None:
        done.append("step")

    run(lambda: run_steps("client", _fails, step))

    assert done == ["step"]
    assert "closing_step_failed" in caplog.text


async def test_a_caller_that_is_cancelled_does_not_end_a_shutdown_and_the_next_waits_for_its_end():
    gate, done = asyncio.Event(), []

    async def step() -> None:
        await gate.wait()
        done.append("step")

    closing = Closing("client", step)
    first = asyncio.ensure_future(closing.wait())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert done == []
    gate.set()
    await closing.wait()
    assert done == ["step"]
    await closing.wait()
    assert done == ["step"]


async def test_work_that_is_repeated_survives_its_errors(caplog, monkeypatch):
    monkeypatch.setattr(background, "PAUSE_AFTER_ERROR", 0.0)
    runs: list[int] = []

    owner, enough = Background(), asyncio.Event()

    async def work() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            raise ZeroDivisionError
        if len(runs) == 3:
            enough.set()

    owner.spawn_repeated("tidying", 0.0, work)
    await enough.wait()
    await owner.stop()
    assert runs == [0, 1, 2]
    assert caplog.text.count("background_loop_failed") == 1
