"""Consumption in order: what comes again and when, by coroutines and on threads."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rmqtools.model.codes import RequestCode
from rmqtools.model.consume import ConsumeOrderlyStatus
from rmqtools.model.queue import MessageQueue
from tests.unit.engine.consumer.blocking_scene import PATIENCE, Heard, blocking, in_both_ways, until
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, idle, pushing, refuses, stored, waits_for

SUCCESS, COMMIT = ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.COMMIT
SUSPEND, ROLLBACK = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, ConsumeOrderlyStatus.ROLLBACK
SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK


class Script:
    """A listener with scripted results, then success, that records its messages."""

    def __init__(self, *answers: object, auto_commit: bool = True) -> None:
        self._answers = list(answers)
        self._auto_commit = auto_commit
        self.heard: list[list[tuple[int, int]]] = []

    async def __call__(self, messages, context):
        self.heard.append([(message.queue_offset, message.reconsume_times) for message in messages])
        context.auto_commit = self._auto_commit
        context.suspend_current_queue_time = 0.0
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def offsets(self) -> list[int]:
        return [offset for batch in self.heard for offset, _ in batch]


def begin(scene: Scene, *offsets: int) -> None:
    """Let the messages arrive, and the queue be worked on."""
    scene.arrive(*map(stored, offsets))
    scene.consumption.work_on(scene.held)


async def consume(scene: Scene, *offsets: int) -> None:
    """Consume what does not wait."""
    begin(scene, *offsets)
    await idle()


async def until_over_suspensions(scene: Scene, committed: int) -> None:
    """Let suspensions end until so much is committed."""

    def is_there() -> bool:
        scene.clock.advance(0.02)
        scene.held.wake()
        return scene.committed == committed

    await until(is_there)


@in_both_ways
@pytest.mark.parametrize("failure", [SUSPEND, OSError("disk full"), asyncio.CancelledError(), True])
async def test_a_failed_batch_comes_again_before_anything_behind_it_with_a_try_more(consuming, failure):
    heard = []

    def listen(messages, context):
        heard.append((messages[0].queue_offset, messages[0].reconsume_times))
        context.suspend_current_queue_time = 0.0
        if heard[-1] not in ((3, 0), (3, 1)):
            return None
        if isinstance(failure, BaseException):
            raise failure
        return failure

    async with consuming(listen, orderly=True) as scene:
        begin(scene, *range(6))
        await until(lambda: (3, 0) in heard and scene.is_resting)
        assert scene.committed == 3
        await until_over_suspensions(scene, 6)
    assert heard == [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (4, 0), (5, 0)]


@in_both_ways
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([SUCCESS, SUCCESS, SUSPEND], [(0, 0), (1, 0), (2, 0), (2, 1), (3, 0)], id="suspended"),
        pytest.param(
            [SUCCESS, COMMIT, SUCCESS, ROLLBACK], [(n, 0) for n in (0, 1, 2, 3, 2, 3)], id="rolled-back"
        ),
    ],
)
async def test_without_auto_commit_what_failed_comes_again_or_all_since_the_last_commit(
    consuming, answers, expected
):
    heard, left = [], list(answers)

    def listen(messages, context):
        heard.append((messages[0].queue_offset, messages[0].reconsume_times))
        context.auto_commit = False
        context.suspend_current_queue_time = 0.0
        return left.pop(0) if left else COMMIT

    async with consuming(listen, orderly=True) as scene:
        begin(scene, *range(4))
        await until_over_suspensions(scene, 4)
    assert heard == expected


async def test_a_queue_waits_as_long_as_the_listener_or_the_configuration_says():
    calls = []

    async def listen(messages, context):
        calls.append(messages)
        context.suspend_current_queue_time = 4.0 if len(calls) == 1 else None
        return SUSPEND

    async with pushing(listen, orderly=True, suspend_current_queue_time=2.0) as scene:
        await consume(scene, 0)
        for seconds, count in [(3.9, 1), (0.2, 2), (1.9, 2), (0.2, 3)]:
            await scene.pass_time(seconds)
            assert len(calls) == count


async def test_what_was_tried_too_often_becomes_a_dead_letter_once_and_the_rest_of_its_batch_comes_again():
    listener = Script(SUSPEND, SUSPEND)

    settings: Any = {"orderly": True, "max_reconsume_times": 1, "consume_message_batch_max_size": 2}
    async with pushing(listener, **settings) as scene:
        scene.arrive(stored(0, times=1), stored(1))
        scene.consumption.work_on(scene.held)
        await until(lambda: len(scene.asked(SEND_BACK)) == 1 and not scene.held.taken)
        await scene.pass_time(0.02)
        await until(lambda: scene.committed == 2)
        assert [(one["offset"], one["delayLevel"]) for one in scene.asked(SEND_BACK)] == [
            ("0", "-1"),
            ("100", "-1"),
        ]
    assert listener.heard == [[(0, 1), (1, 0)], [(1, 1)]]


async def test_a_dead_letter_that_no_broker_takes_is_tried_again_and_keeps_its_place():
    listener = Script(SUSPEND)

    async with pushing(listener, answer=refuses, orderly=True, max_reconsume_times=0) as scene:
        await consume(scene, 0, 1)
        await until(lambda: scene.asked(SEND_BACK) and not scene.held.taken)
        assert scene.committed is None
        await scene.pass_time(0.02)
        await until(lambda: scene.committed == 2)
    assert listener.heard == [[(0, 0)], [(0, 1)], [(1, 0)]]


async def test_without_auto_commit_success_goes_on_and_commit_is_for_all_before():
    listener = Script(None, None, COMMIT, None, auto_commit=False)

    async with pushing(listener, orderly=True) as scene:
        await consume(scene, 0, 1)
        assert (listener.offsets, scene.committed) == ([0, 1], None)
        scene.arrive(stored(2), stored(3))
        await idle()
        assert (listener.offsets, scene.committed) == ([0, 1, 2, 3], 3)


async def test_a_queue_with_nothing_but_uncommitted_messages_leaves_the_loop_to_others():
    async with pushing(Script(auto_commit=False), orderly=True) as scene:
        await consume(scene, 0)
        assert scene.held.count == 1
        await asyncio.wait_for(asyncio.sleep(0.01), 1)


async def test_nothing_is_handed_out_without_the_lock_or_when_it_is_too_old():
    listener = Script()

    async with pushing(listener, orderly=True) as scene:
        scene.held.lock(False)
        await consume(scene, 0)
        assert listener.offsets == []
        scene.held.lock(True)
        scene.clock.advance(31)
        await idle()
        assert listener.offsets == []
        scene.held.lock(True)
        await until(lambda: listener.offsets == [0])


async def test_the_result_for_a_queue_given_up_meanwhile_is_not_committed():
    ended = asyncio.Event()

    async with pushing(waits_for(ended), orderly=True) as scene:
        await consume(scene, 0)
        scene.held.drop()
        del scene.member.held.pulled[QUEUE]
        ended.set()
        await until(lambda: not scene.consumption.running)
        assert scene.committed is None


async def test_messages_of_a_retry_topic_are_handed_out_one_by_one_each_to_the_listener_of_its_topic():
    first, second = Script(), Script()

    async with pushing(first, orderly=True, consume_message_batch_max_size=8) as scene:
        scene.consumer.subscribe("U", second)
        retry = scene.hold(MessageQueue("%RETRY%g", "broker-a", 0))
        for offset, topic in enumerate("TUT"):
            retry.put([stored(offset, topic="%RETRY%g", RETRY_TOPIC=topic)])
        scene.consumption.work_on(retry)
        await until(lambda: retry.count == 0)
        retry.drop()
    assert (first.heard, second.heard) == ([[(0, 0)], [(2, 0)]], [[(1, 0)]])


async def test_a_context_that_cannot_be_understood_stops_no_queue(caplog):
    calls = []

    async def listen(messages, context):
        calls.append(messages)
        context.suspend_current_queue_time = "soon" if len(calls) == 1 else 0.0
        return SUSPEND if len(calls) == 1 else None

    async with pushing(listen, orderly=True) as scene:
        await consume(scene, 0)
        await scene.pass_time(1.1)
        await until(lambda: scene.committed == 1)
    assert "consume_failed" in caplog.text


async def test_queues_with_slow_listeners_share_a_thread_call_by_call():
    heard, both = list[object](), threading.Event()

    def listen(messages, context):
        assert both.wait(PATIENCE)
        scene.clock.advance(0.02)
        heard.append((context.message_queue.queue_id, messages[0].queue_offset))

    async with blocking(listen, orderly=True) as (scene, _):
        other = scene.hold(MessageQueue("T", "broker-a", 1))
        for held in (scene.held, other):
            held.put([*map(stored, range(3))])
            scene.consumption.work_on(held)
        both.set()
        await until(lambda: not scene.held.count and not other.count)
        other.drop()
    assert heard == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]


async def test_a_call_that_may_not_begin_any_more_leaves_its_message_in_the_queue():
    heard, free = Heard(), threading.Event()

    async with blocking(heard, orderly=True) as (scene, pool):
        other = pool.call(free.wait, PATIENCE)
        begin(scene, 0, 1)
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
        begin(scene, *first)
        await asyncio.to_thread(heard.reached[0].wait, PATIENCE)
        for offsets in coming:
            scene.arrive(*map(stored, offsets))
        heard.go_on.set()
        await until(lambda: scene.committed == coming[-1].stop)
    assert heard.offsets == list(range(coming[-1].stop))


async def test_a_queue_that_is_dropped_before_its_burst_begins_goes_back_to_its_puller():
    async with pushing(orderly=True) as scene:
        await consume(scene)
        source: Any = SimpleNamespace(held=scene.held, returned=asyncio.get_running_loop().create_future())
        scene.consumption.add(source)
        scene.held.drop()
        await idle()
        assert source.returned.done()
