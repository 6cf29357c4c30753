"""Blocking listeners of orderly queues: a thread takes messages in order, until a call does not commit."""

import asyncio
import threading

import pytest

from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.consume import ConsumeOrderlyStatus
from rmqtools.model.queue import MessageQueue
from tests.unit.engine.consumer.blocking_scene import PATIENCE, Heard, blocking, until
from tests.unit.engine.consumer.push_scene import Scene, stored

SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
COMMIT, ROLLBACK = ConsumeOrderlyStatus.COMMIT, ConsumeOrderlyStatus.ROLLBACK


def consume(scene: Scene, *offsets: int) -> None:
    """Let the messages arrive, and the queue be worked on."""
    scene.arrive(*map(stored, offsets))
    scene.consumption.work_on(scene.held)


async def until_over_suspensions(scene: Scene, committed: int) -> None:
    def is_there() -> bool:
        scene.clock.advance(0.02)
        scene.held.wake()
        return scene.committed == committed

    await until(is_there)


async def test_a_thread_takes_many_messages_in_order_and_each_is_committed():
    heard = Heard()

    async with blocking(heard, orderly=True) as (scene, pool):
        consume(scene, *range(500))
        await until(lambda: scene.committed == 500)
        assert (scene.held.count, scene.held.cached_bytes) == (0, 0)
        assert pool.count <= 2
    assert heard.offsets == list(range(500))


@pytest.mark.parametrize("failure", [SUSPEND, OSError("disk full"), SystemExit(3), True])
async def test_a_failed_message_comes_again_before_anything_behind_it_and_nothing_before_it_does(failure):
    heard = []

    def listen(messages, context):
        heard.append((messages[0].queue_offset, messages[0].reconsume_times))
        context.suspend_current_queue_time = 0.0
        if heard[-1] in ((3, 0), (3, 1)):
            if isinstance(failure, BaseException):
                raise failure
            return failure
        return None

    async with blocking(listen, orderly=True) as (scene, _):
        consume(scene, *range(6))
        await until_over_suspensions(scene, 6)
    assert heard == [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (4, 0), (5, 0)]


async def test_results_count_while_a_later_call_runs_and_a_given_up_queue_is_left_after_it():
    heard = Heard(3)

    async with blocking(heard, orderly=True) as (scene, _):
        consume(scene, *range(10))
        await until(lambda: scene.committed == 3)
        assert scene.held.consuming.locked()
        scene.held.drop()
        heard.go_on.set()
        await until(lambda: not scene.held.consuming.locked())
        assert scene.committed == 4
    assert heard.offsets == [0, 1, 2, 3]


async def test_queues_with_slow_listeners_share_a_thread_call_by_call():
    heard, both = list[object](), threading.Event()

    def listen(messages, context):
        assert both.wait(PATIENCE)
        scene.clock.advance(0.02)
        heard.append((context.message_queue.queue_id, messages[0].queue_offset))

    async with blocking(listen, orderly=True) as (scene, _):
        other = ProcessQueue(MessageQueue("T", "broker-a", 1), scene.clock, 0)
        other.lock(True)
        for held in (scene.held, other):
            held.put([*map(stored, range(3))])
            scene.consumption.work_on(held)
        both.set()
        await until(lambda: not scene.held.count and not other.count)
        other.drop()
    assert heard == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]


async def test_without_auto_commit_commit_is_for_all_before_and_rollback_brings_them_back():
    heard, answers = [], iter([None, None, COMMIT, None, ROLLBACK, None, COMMIT])

    def listen(messages, context):
        heard.append(messages[0].queue_offset)
        context.auto_commit = False
        context.suspend_current_queue_time = 0.0
        return next(answers)

    async with blocking(listen, orderly=True) as (scene, _):
        consume(scene, *range(5))
        await until_over_suspensions(scene, 5)
    assert heard == [0, 1, 2, 3, 4, 3, 4]


async def test_calls_with_several_messages_stay_together():
    heard = []

    def listen(messages, context):
        heard.append([message.queue_offset for message in messages])

    async with blocking(listen, orderly=True, consume_message_batch_max_size=3) as (scene, _):
        consume(scene, *range(8))
        await until(lambda: scene.committed == 8)
    assert heard == [[0, 1, 2], [3, 4, 5], [6, 7]]


async def test_every_call_is_counted_with_its_result_and_its_time():
    failed: list[object] = []

    def listen(messages, context):
        scene.clock.advance(0.001)
        context.suspend_current_queue_time = 0.0
        if messages[0].queue_offset == 5 and not failed:
            failed.append(5)
            return SUSPEND
        return None

    async with blocking(listen, orderly=True) as (scene, _):
        consume(scene, *range(8))
        await until_over_suspensions(scene, 8)
        counted = scene.member.rates._slices["T"]
        assert sum(one.succeeded for one in counted) == 8
        assert (sum(one.failed for one in counted), sum(one.calls for one in counted)) == (1, 9)


async def test_a_call_that_may_not_begin_any_more_leaves_its_message_in_the_queue():
    heard, free = Heard(), threading.Event()

    async with blocking(heard, orderly=True) as (scene, pool):
        other = pool.call(free.wait, PATIENCE)
        consume(scene, 0, 1)
        await until(lambda: pool.count == 2)
        scene.held.lock(False)
        free.set()
        await other
        await until(lambda: not scene.held.consuming.locked())
        assert (heard.offsets, len(scene.held.taken)) == ([], 0)
        scene.held.lock(True)
        await until(lambda: scene.committed == 2)
    assert heard.offsets == [0, 1]


@pytest.mark.parametrize(
    ("first", "coming"),
    [
        pytest.param(range(2), [range(2, 4), range(4, 6)], id="what-follows"),
        pytest.param(range(2), [range(1, 4)], id="also-what-is-held"),
        pytest.param(range(300), [range(300, 303)], id="while-the-queue-holds-more-than-a-run"),
    ],
)
async def test_messages_that_come_during_a_call_follow_each_once_and_in_order(first, coming):
    heard = Heard(0)

    async with blocking(heard, orderly=True) as (scene, _):
        consume(scene, *first)
        await asyncio.to_thread(heard.reached[0].wait, PATIENCE)
        for offsets in coming:
            scene.arrive(*map(stored, offsets))
        heard.go_on.set()
        await until(lambda: scene.committed == coming[-1].stop)
    assert heard.offsets == list(range(coming[-1].stop))
