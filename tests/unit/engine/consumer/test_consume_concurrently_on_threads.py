"""Blocking listeners: threads take waiting messages one by one; each message keeps its own result."""

import asyncio
import threading

import pytest

from rmqtools.engine.consumer import consume_concurrently
from rmqtools.model.codes import RequestCode
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from tests.unit.engine.consumer.blocking_scene import PATIENCE, Heard, blocking, until
from tests.unit.engine.consumer.push_scene import Scene, stored

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK


def sent_back(scene: Scene) -> list[int]:
    return [int(one["offset"]) // 100 for one in scene.asked(SEND_BACK)]


async def test_a_thread_takes_all_that_waits_in_order_and_is_asked_once():
    heard = Heard()

    async with blocking(heard) as (scene, pool):
        scene.arrive(*map(stored, range(500)))
        await until(lambda: scene.committed == 500)
        assert (pool.count, scene.held.count, scene.held.cached_bytes) == (1, 0, 0)
    assert heard.offsets == list(range(500))


async def test_slow_listeners_run_at_once_on_as_many_threads_as_there_may_be():
    together = threading.Barrier(20)

    def listen(messages, context):
        together.wait(PATIENCE)

    async with blocking(listen, threads=20) as (scene, _):
        scene.arrive(*map(stored, range(40)))
        await until(lambda: scene.committed == 40)
        assert sent_back(scene) == []


async def test_messages_behind_a_slow_one_are_taken_by_another_thread():
    heard = Heard(0)

    async with blocking(heard, threads=2) as (scene, _):
        scene.arrive(*map(stored, range(100)))
        await until(lambda: scene.held.count == 1)
        assert scene.committed == 0
        heard.go_on.set()
        await until(lambda: scene.committed == 100)


@pytest.mark.process
async def test_a_listener_that_was_quick_and_becomes_slow_gets_its_threads_back():
    together, first_slow = threading.Barrier(8), 0

    def listen(messages, context):
        if messages[0].queue_offset >= first_slow:
            together.wait(PATIENCE)

    async with blocking(listen, threads=8) as (scene, pool):
        while pool._width > 1:
            sent = range(first_slow, first_slow + 500)
            first_slow += 500
            for begin in sent[::100]:
                scene.arrive(*map(stored, range(begin, begin + 100)))
            await until(lambda: scene.held.count == 0)
        scene.arrive(*map(stored, range(first_slow, first_slow + 8)))
        await until(lambda: scene.held.count == 0)
        assert (sent_back(scene), scene.committed) == ([], first_slow + 8)


def fails(messages, context):
    raise OSError("disk full")


def leaves(messages, context):
    raise SystemExit(3)


def answers_later(messages, context):
    return LATER


def answers_in_order(messages, context):
    return ConsumeOrderlyStatus.SUCCESS


def acknowledges_none(messages, context):
    context.ack_index = -1


@pytest.mark.parametrize("failing", [fails, leaves, answers_later, answers_in_order, acknowledges_none])
async def test_a_failed_message_is_sent_back_alone_and_its_neighbours_are_consumed_once(failing):
    heard = []

    def listen(messages, context):
        heard.append(messages[0].queue_offset)
        return failing(messages, context) if heard[-1] == 4 else None

    async with blocking(listen) as (scene, _):
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 10)
        assert sent_back(scene) == [4]
    assert heard == list(range(10))


async def test_a_context_that_cannot_be_understood_costs_no_message(monkeypatch, caplog):
    monkeypatch.setattr(consume_concurrently, "_TRY_AGAIN_HERE", 0.0)
    calls = []

    def listen(messages, context):
        calls.append(messages)
        context.ack_index = "all" if len(calls) == 1 else 0

    async with blocking(listen) as (scene, _):
        scene.arrive(stored(0), stored(1))
        await until(lambda: scene.committed == 2)
    assert len(calls) == 3
    assert "consume_failed" in caplog.text


async def test_a_message_without_listener_is_sent_back_alone(caplog):
    async with blocking(Heard()) as (scene, _):
        scene.arrive(stored(0), stored(1))
        scene.arrive(stored(2, topic="other"))
        await until(lambda: scene.committed == 3)
        assert sent_back(scene) == [2]
    assert "no listener for topic 'other'" in caplog.text


async def test_results_count_while_the_thread_has_a_later_message_and_a_given_up_queue_is_left_at_once():
    heard = Heard(3)

    async with blocking(heard) as (scene, _):
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 3)
        scene.held.drop()
        heard.go_on.set()
        await until(lambda: not scene.consumption.running)
        assert (scene.committed, sent_back(scene)) == (3, [])
    assert heard.offsets == [0, 1, 2, 3]


async def test_a_listener_that_takes_too_long_loses_its_own_message_only_and_fails_in_vain():
    heard = Heard(1)

    def listen(messages, context):
        heard(messages, context)
        return LATER if messages[0].queue_offset == 1 else None

    async with blocking(listen, consume_timeout=60.0) as (scene, _):
        scene.arrive(*map(stored, range(4)))
        await until(lambda: scene.committed == 1)
        scene.clock.advance(59)
        await scene.consumption.give_up_late()
        assert (scene.committed, sent_back(scene)) == (1, [])
        scene.clock.advance(2)
        await scene.consumption.give_up_late()
        assert (scene.committed, sent_back(scene)) == (2, [1])
        heard.go_on.set()
        await until(lambda: scene.committed == 4)
        assert sent_back(scene) == [1]
    assert heard.offsets == [0, 1, 2, 3]


async def test_closing_waits_for_the_call_under_way_and_no_other_begins():
    heard = Heard(2)

    async with blocking(heard) as (scene, _):
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 2)
        closing = asyncio.create_task(scene.consumption.close(PATIENCE))
        await until(lambda: scene.consumption._workers._closing)
        assert not closing.done()
        heard.go_on.set()
        await until(closing.done)
        assert scene.committed == 3
    assert heard.offsets == [0, 1, 2]


async def test_closing_leaves_a_call_that_does_not_end_and_what_was_consumed_before_counts(caplog):
    heard = Heard(2)

    async with blocking(heard) as (scene, _):
        scene.arrive(*map(stored, range(10)))
        await asyncio.to_thread(heard.reached[2].wait, PATIENCE)
        await scene.consumption.close(0.01)
        assert scene.committed == 2
        heard.go_on.set()
    assert heard.offsets == [0, 1, 2]
    assert "listeners_still_running group='g' count=1" in caplog.text


async def test_after_a_while_a_thread_does_other_work_that_waits_for_it():
    heard = Heard(0)

    async with blocking(heard) as (scene, pool):
        scene.arrive(*map(stored, range(3)))
        await asyncio.to_thread(heard.reached[0].wait, PATIENCE)
        other = pool.call(heard.offsets.append, "other")
        scene.clock.advance(1.0)
        heard.go_on.set()
        await until(lambda: scene.committed == 3)
        await other
    assert heard.offsets == [0, "other", 1, 2]


async def test_every_message_is_counted_with_its_result_and_its_time():
    def listen(messages, context):
        scene.clock.advance(0.001)
        return LATER if messages[0].queue_offset == 5 else None

    async with blocking(listen) as (scene, _):
        scene.arrive(*map(stored, range(10)))
        await until(lambda: scene.committed == 10)
        status = scene.member.rates.status("T", scene.clock.monotonic())
        assert (status.consume_ok_tps, status.consume_failed_msgs) == (9, 1)
        assert status.consume_rt == pytest.approx(1.0)
