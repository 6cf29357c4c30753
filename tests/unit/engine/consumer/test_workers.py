"""Calls of listeners by tasks and threads: how many make them, and which results count."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from rmqtools.engine.connection.background import Background
from rmqtools.engine.consumer import consume_concurrently
from rmqtools.model.codes import RequestCode
from rmqtools.model.consume import ConsumeConcurrentlyStatus
from tests.unit.engine.consumer.blocking_scene import (
    PATIENCE,
    Heard,
    blocking,
    in_a_coroutine,
    in_both_ways,
    until,
)
from tests.unit.engine.consumer.push_scene import idle, pushing, refuses, stored

SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK
in_any_order_and_in_order = pytest.mark.parametrize("orderly", [False, True], ids=["any-order", "orderly"])


def workers() -> int:
    return sum(1 for task in asyncio.all_tasks() if task.get_name() == "consume")


@pytest.fixture
def at_once(monkeypatch):
    """Messages that no worker could handle are tried again at once."""
    monkeypatch.setattr(consume_concurrently, "_TRY_AGAIN_HERE", 0.0)


@in_both_ways
@pytest.mark.parametrize(("orderly", "committed"), [(False, 3), (True, 4)], ids=["any-order", "orderly"])
async def test_results_count_while_a_later_call_waits_and_a_given_up_queue_is_left_after_it(
    consuming, orderly, committed
):
    heard = Heard(3)

    async with consuming(heard, orderly=orderly) as scene:
        scene.consumption.work_on(scene.held)
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 3)
        scene.held.drop()
        heard.go_on.set()
        await until(lambda: workers() == 0 and not scene.held.consuming.locked())
        assert (scene.committed, scene.asked(SEND_BACK)) == (committed, [])
    assert heard.offsets == [0, 1, 2, 3]


@in_both_ways
@in_any_order_and_in_order
async def test_closing_waits_for_the_call_under_way_and_no_other_begins(consuming, orderly):
    heard = Heard(2)

    async with consuming(heard, orderly=orderly) as scene:
        scene.consumption.work_on(scene.held)
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 2)
        closing = asyncio.create_task(scene.consumption.close(PATIENCE))
        await idle()
        assert not closing.done()
        heard.go_on.set()
        await closing
        assert scene.committed == 3
    assert heard.offsets == [0, 1, 2]


@in_both_ways
@in_any_order_and_in_order
async def test_closing_leaves_a_call_that_does_not_end_and_what_was_consumed_before_counts(
    consuming, orderly, caplog
):
    heard = Heard(3)

    async with consuming(heard, orderly=orderly) as scene:
        scene.consumption.work_on(scene.held)
        scene.arrive(*map(stored, range(10)))
        await until(heard.reached[3].is_set)
        await scene.consumption.close(0.01)
        assert (scene.committed, scene.held.count, scene.asked(SEND_BACK)) == (3, 7, [])
        heard.go_on.set()
    assert heard.offsets == [0, 1, 2, 3]
    assert "listeners_still_running group='g' count=1" in caplog.text


@in_both_ways
async def test_every_call_is_counted_with_its_result_and_its_time(consuming):
    def listen(messages, context):
        scene.clock.advance(0.001)
        return ConsumeConcurrentlyStatus.RECONSUME_LATER if messages[0].queue_offset == 5 else None

    async with consuming(listen) as scene:
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 10)
        status = scene.member.rates.status("T", scene.clock.monotonic())
        assert (status.consume_ok_tps, status.consume_failed_msgs) == (9, 1)
        assert status.consume_rt == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(("orderly", "turns"), [(False, 1), (True, 2)], ids=["any-order", "orderly"])
async def test_a_thread_takes_all_that_waits_in_order_and_is_hardly_asked(orderly, turns):
    heard = Heard()

    async with blocking(heard, orderly=orderly) as (scene, pool):
        scene.consumption.work_on(scene.held)
        scene.arrive(*map(stored, range(500)))
        await until(lambda: scene.committed == 500)
        assert (scene.held.count, scene.held.cached_bytes) == (0, 0)
        assert pool.count <= turns
    assert heard.offsets == list(range(500))


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


async def test_a_worker_that_fails_itself_costs_no_message(at_once, monkeypatch):
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


@in_both_ways
async def test_a_context_that_cannot_be_understood_costs_no_message(consuming, at_once, caplog):
    calls = []

    def listen(messages, context):
        calls.append(messages)
        context.ack_index = "all" if len(calls) == 1 else 0

    async with consuming(listen) as scene:
        scene.arrive(stored(0), stored(1))
        await until(lambda: scene.committed == 2)
    assert len(calls) == 3
    assert "consume_failed" in caplog.text


async def test_a_call_that_was_given_up_acknowledges_nothing_when_it_ends():
    heard = Heard(0)

    async with in_a_coroutine(heard, answer=refuses, consume_timeout=60.0) as scene:
        scene.arrive(stored(0))
        await until(heard.reached[0].is_set)
        scene.clock.advance(61)
        await scene.consumption.give_up_late()
        heard.go_on.set()
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
