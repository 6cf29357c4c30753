import asyncio
from typing import Any

import pytest

from rmqtools.engine.group import hold_and_release
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.codes import RequestCode
from rmqtools.model.consume import ConsumeOrderlyStatus
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, idle, pushing, refuses, stored, until

SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
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


async def consume(scene: Scene, *offsets: int) -> None:
    """Let the messages arrive, and the queue be worked on."""
    scene.arrive(*map(stored, offsets))
    scene.consumption.work_on(scene.held)
    await idle()


async def pass_suspension(scene: Scene) -> None:
    """Let the shortest suspension be over."""
    scene.clock.advance(0.02)
    scene.held.wake()
    await idle()


@pytest.mark.parametrize("failure", [SUSPEND, OSError("disk full"), asyncio.CancelledError(), True])
async def test_a_failed_batch_comes_again_before_anything_behind_it_with_a_try_more(failure):
    listener = Script(None, failure, failure)

    async with pushing(listener, orderly=True) as scene:
        await consume(scene, 0, 1, 2)
        assert (listener.heard, scene.committed) == ([[(0, 0)], [(1, 0)]], 1)
        await pass_suspension(scene)
        await pass_suspension(scene)
        await until(lambda: scene.committed == 3)
    assert listener.heard[1:] == [[(1, 0)], [(1, 1)], [(1, 2)], [(2, 0)]]


async def test_a_queue_waits_as_long_as_the_listener_or_the_configuration_says():
    calls = []

    async def listen(messages, context):
        calls.append(messages)
        context.suspend_current_queue_time = 4.0 if len(calls) == 1 else None
        return SUSPEND

    async with pushing(listen, orderly=True, suspend_current_queue_time=2.0) as scene:
        await consume(scene, 0)
        for seconds, count in [(3.9, 1), (0.2, 2), (1.9, 2), (0.2, 3)]:
            scene.clock.advance(seconds)
            scene.held.wake()
            await idle()
            assert len(calls) == count


async def test_what_was_tried_too_often_becomes_a_dead_letter_once_and_the_rest_of_its_batch_comes_again():
    listener = Script(SUSPEND, SUSPEND)

    settings: Any = {"orderly": True, "max_reconsume_times": 1, "consume_message_batch_max_size": 2}
    async with pushing(listener, **settings) as scene:
        scene.arrive(stored(0, times=1), stored(1))
        scene.consumption.work_on(scene.held)
        await until(lambda: len(scene.asked(SEND_BACK)) == 1 and not scene.held.taken)
        await pass_suspension(scene)
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
        await pass_suspension(scene)
        await until(lambda: scene.committed == 2)
    assert listener.heard == [[(0, 0)], [(0, 1)], [(1, 0)]]


async def test_without_auto_commit_success_goes_on_and_commit_is_for_all_before():
    listener = Script(None, None, ConsumeOrderlyStatus.COMMIT, None, auto_commit=False)

    async with pushing(listener, orderly=True) as scene:
        await consume(scene, 0, 1)
        assert (listener.offsets, scene.committed) == ([0, 1], None)
        scene.arrive(stored(2), stored(3))
        await idle()
        assert (listener.offsets, scene.committed) == ([0, 1, 2, 3], 3)


async def test_without_auto_commit_rollback_brings_back_all_since_the_last_commit():
    listener = Script(
        ConsumeOrderlyStatus.COMMIT, None, ConsumeOrderlyStatus.ROLLBACK, None, None, auto_commit=False
    )

    async with pushing(listener, orderly=True) as scene:
        await consume(scene, 0, 1, 2)
        assert scene.committed == 1
        await pass_suspension(scene)
    assert listener.offsets == [0, 1, 2, 1, 2]


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

    async def listen(messages, context):
        await ended.wait()

    async with pushing(listen, orderly=True) as scene:
        await consume(scene, 0)
        scene.held.drop()
        del scene.member.held.pulled[QUEUE]
        ended.set()
        await until(lambda: not scene.consumption.running)
        assert scene.committed is None


async def test_a_queue_is_not_released_while_its_listener_runs(monkeypatch):
    monkeypatch.setattr(hold_and_release, "_PATIENCE", 0.01)
    ended = asyncio.Event()

    async def listen(messages, context):
        await ended.wait()

    async with pushing(listen, orderly=True) as scene:
        await consume(scene, 0)
        held = scene.member.held
        await held.give_up([scene.held])
        assert held.pulled == {QUEUE: scene.held}
        ended.set()
        await held.give_up([scene.held])
        assert held.pulled == {}


async def test_a_queue_that_cannot_be_given_up_yet_is_looked_at_again_soon(monkeypatch):
    monkeypatch.setattr(hold_and_release, "_PATIENCE", 0.01)

    async with pushing(orderly=True) as scene:
        rebalance = scene.ownership.rounds._rebalance
        async with scene.held.consuming:
            await scene.member.held.give_up([scene.held])
        assert rebalance.must_try_again
        await scene.member.held.give_up([scene.held])
        assert not rebalance.must_try_again


async def test_messages_of_a_retry_topic_are_handed_out_one_by_one_each_to_the_listener_of_its_topic():
    first, second = Script(), Script()

    async with pushing(first, orderly=True, consume_message_batch_max_size=8) as scene:
        scene.consumer.subscribe("U", second)
        retry = ProcessQueue(scene.held.queue.__class__("%RETRY%g", "broker-a", 0), scene.clock, 0)
        retry.lock(True)
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
        scene.clock.advance(1.1)
        scene.held.wake()
        await until(lambda: scene.committed == 1)
    assert "consume_failed" in caplog.text


async def test_closing_waits_for_the_listener_under_way_and_starts_no_other():
    ended = asyncio.Event()
    listener = Script()

    async def listen(messages, context):
        await listener(messages, context)
        await ended.wait()

    async with pushing(listen, orderly=True) as scene:
        await consume(scene, 0, 1)
        closing = asyncio.create_task(scene.consumption.close(5.0))
        await idle()
        assert not closing.done()
        ended.set()
        await closing
        assert (listener.offsets, scene.committed) == ([0], 1)
