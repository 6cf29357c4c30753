"""Coroutine listeners: how many tasks call them, and the result of a run that is cut off."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from rmqtools.engine.connection.background import Background
from rmqtools.engine.consumer import consume_concurrently
from rmqtools.model.codes import RequestCode
from tests.unit.engine.consumer.push_scene import idle, pushing, refuses, stored, until

SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK


def workers() -> int:
    return sum(1 for task in asyncio.all_tasks() if task.get_name() == "consume")


async def test_messages_that_arrive_together_get_a_worker_each_and_no_more():
    ended, calls = asyncio.Event(), []

    async def listen(messages, context):
        calls.append(messages)
        await ended.wait()

    async with pushing(listen, consume_threads=20) as scene:
        for offset in range(6):
            scene.arrive(stored(offset))
        await idle(6)
        assert (len(calls), workers()) == (6, 6)
        ended.set()
        await until(lambda: scene.committed == 6)


async def test_of_a_listener_that_waits_for_nothing_one_worker_makes_all_calls():
    heard = []

    async def listen(messages, context):
        heard.append((messages[0].queue_offset, asyncio.current_task()))

    async with pushing(listen) as scene:
        scene.arrive(*map(stored, range(100)))
        await until(lambda: scene.committed == 100)
    assert [offset for offset, _ in heard] == list(range(100))
    assert len({task for _, task in heard}) == 1


async def test_messages_that_arrive_while_a_quick_listener_ends_start_one_worker():
    started: list[str] = []
    spawn = Background.spawn

    def counting(background, name, work):
        started.extend([name] if name == "consume" else ())
        return spawn(background, name, work)

    async def listen(messages, context):
        """Wait for nothing."""

    async with pushing(listen, consume_threads=20) as scene:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Background, "spawn", counting)
            scene.arrive(stored(0))  # its worker runs in the next step of the loop, and then more arrive
            asyncio.get_running_loop().call_soon(lambda: scene.arrive(*map(stored, range(1, 33))))
            await until(lambda: scene.committed == 33)

    assert len(started) <= 2


async def test_a_failed_call_in_the_middle_of_a_run_is_settled_alone_and_each_call_is_counted():
    heard = []

    async def listen(messages, context):
        heard.append(messages[0].queue_offset)
        scene.clock.advance(0.0001)
        if heard[-1] == 4:
            raise OSError("disk full")

    async with pushing(listen) as scene:
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 10)
        assert [one["offset"] for one in scene.asked(SEND_BACK)] == ["400"]
        status = scene.member.rates.status("T", scene.clock.monotonic())
        assert (status.consume_ok_tps, status.consume_failed_msgs) == (9, 1)
        assert status.consume_rt == pytest.approx(0.1, rel=0.05)
    assert heard == list(range(10))


async def test_results_count_while_a_later_call_waits_and_a_given_up_queue_is_left_after_it():
    heard, go_on = [], asyncio.Event()

    async def listen(messages, context):
        heard.append(messages[0].queue_offset)
        if heard[-1] == 3:
            await go_on.wait()

    async with pushing(listen, consume_threads=1) as scene:
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 3)
        scene.held.drop()
        go_on.set()
        await until(lambda: workers() == 0)
        assert (scene.committed, scene.asked(SEND_BACK)) == (3, [])
    assert heard == [0, 1, 2, 3]


async def test_a_run_cut_off_by_closing_counts_up_to_the_call_that_did_not_end():
    heard = []

    async def listen(messages, context):
        heard.append(messages[0].queue_offset)
        if heard[-1] == 3:
            await asyncio.Event().wait()

    async with pushing(listen, consume_threads=1) as scene:
        scene.arrive(*map(stored, range(10)))
        await idle()
        await scene.consumption.close(0.01)
        assert (scene.committed, scene.held.count) == (3, 7)
        assert scene.asked(SEND_BACK) == []
    assert heard == [0, 1, 2, 3]


async def test_a_listener_has_a_task_to_limit_its_time_in():
    async def listen(messages, context):
        if messages[0].queue_offset == 1:
            async with asyncio.timeout(0.1):
                await asyncio.Event().wait()

    async with pushing(listen, consume_threads=1) as scene:
        scene.arrive(*map(stored, range(3)))
        await until(lambda: scene.committed == 3)
        assert [one["offset"] for one in scene.asked(SEND_BACK)] == ["100"]


async def test_listeners_that_wait_for_nothing_let_others_run_every_ten_milliseconds():
    ticks, heard_at = [0], list[int]()

    async def tick():
        while True:
            await asyncio.sleep(0)
            ticks[0] += 1

    async def listen(messages, context):
        scene.clock.advance(0.004)
        heard_at.append(ticks[0])

    async with pushing(listen) as scene:
        ticking = asyncio.create_task(tick())
        scene.arrive(*map(stored, range(30)))
        await until(lambda: scene.committed == 30)
        ticking.cancel()
    assert max(heard_at.count(one) for one in heard_at) == 3


async def test_a_worker_that_fails_itself_costs_no_message(monkeypatch, caplog):
    monkeypatch.setattr(consume_concurrently, "_TRY_AGAIN_HERE", 0.0)
    asked, heard = list[Any](), list[Any]()

    async def listen(messages, context):
        heard.extend(message.queue_offset for message in messages)

    async with pushing(listen) as scene:
        listener_of = scene.listeners.listener_of

        def fails_once(topic):
            asked.append(topic)
            if len(asked) == 1:
                raise MemoryError
            return listener_of(topic)

        monkeypatch.setattr(scene.listeners, "listener_of", fails_once)
        scene.arrive(*map(stored, range(3)))
        await until(lambda: scene.committed == 3)
    assert sorted(heard) == [0, 1, 2]
    assert len(asked) > 1


async def test_a_call_that_was_given_up_acknowledges_nothing_when_it_ends():
    go_on = asyncio.Event()

    async def listen(messages, context):
        await go_on.wait()

    async with pushing(listen, answer=refuses, consume_timeout=60.0) as scene:
        scene.arrive(stored(0))
        await idle()
        scene.clock.advance(61)
        await scene.consumption.give_up_late()
        go_on.set()
        await until(lambda: workers() == 0)
        assert (scene.committed, scene.held.count) == (0, 1)


@pytest.mark.parametrize("together", [pytest.param(True, id="one answer"), pytest.param(False, id="three")])
async def test_a_worker_that_is_cancelled_begins_no_call_though_its_listener_caught_it(together):
    heard, tasks = list[int](), list[Any]()

    async def listen(messages, context):
        heard.append(messages[0].queue_offset)
        tasks.append(asyncio.current_task())
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async with pushing(listen, consume_threads=1) as scene:
        for messages in [map(stored, range(3))] if together else [[stored(each)] for each in range(3)]:
            scene.arrive(*messages)
        await until(lambda: tasks)
        tasks[0].cancel()
        await asyncio.wait(tasks)
        assert heard == [0]
