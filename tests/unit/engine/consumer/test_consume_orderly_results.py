"""Orderly consumption: which messages are retried, and which results count."""

import asyncio

import pytest

from rmqtools.model.codes import RequestCode
from rmqtools.model.consume import ConsumeOrderlyStatus
from tests.support.scripted_peer import run
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, pushing, stored, until

SUCCESS, COMMIT = ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.COMMIT
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
ROLLBACK = ConsumeOrderlyStatus.ROLLBACK


def begin(scene: Scene, *offsets: int) -> None:
    scene.held.put([stored(offset) for offset in offsets])
    scene.consumption.work_on(scene.held)


def heard_by(*answers: ConsumeOrderlyStatus) -> list[tuple[int, int]]:
    """Offsets and tries of messages, for a listener without auto commit and these results, then COMMIT."""
    heard: list[tuple[int, int]] = []
    left = list(answers)

    async def listen(messages, context):
        context.auto_commit, context.suspend_current_queue_time = False, 0.01
        heard.extend((message.queue_offset, message.reconsume_times) for message in messages)
        return left.pop(0) if left else COMMIT

    async def scenario():
        async with pushing(listen, orderly=True) as scene:
            begin(scene, 0, 1, 2, 3)
            async with asyncio.timeout(5):
                while scene.committed != 4:
                    await asyncio.sleep(0.001)
                    scene.clock.advance(1)
                    scene.held.wake()

    run(scenario)
    return heard


def test_without_auto_commit_a_suspended_batch_comes_again_and_those_before_it_do_not():
    assert heard_by(SUCCESS, SUCCESS, SUSPEND) == [(0, 0), (1, 0), (2, 0), (2, 1), (3, 0)]


def test_without_auto_commit_a_rollback_brings_all_back_since_the_last_commit():
    assert heard_by(SUCCESS, COMMIT, SUCCESS, ROLLBACK) == [(n, 0) for n in (0, 1, 2, 3, 2, 3)]


async def test_the_result_of_the_listener_that_a_queue_waits_for_counts_before_the_queue_is_given_up():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def listen(messages, context):
        begun.set()
        await ended.wait()

    async with pushing(listen, orderly=True) as scene:
        begin(scene, 0, 1)
        await begun.wait()
        giving_up = asyncio.create_task(scene.member.held.give_up([scene.held]))
        await until(lambda: scene.held.is_dropped)
        ended.set()
        await giving_up
        stored_offsets = scene.asked(RequestCode.UPDATE_CONSUMER_OFFSET)
        assert [asked["commitOffset"] for asked in stored_offsets] == ["1"]
        assert QUEUE not in scene.member.held.pulled


class Waits:
    """A coroutine listener that notes offsets, and waits at one of them until it may go on."""

    def __init__(self, at: int) -> None:
        self.offsets: list[int] = []
        self.go_on = asyncio.Event()
        self._at = at

    async def __call__(self, messages, context) -> None:
        self.offsets.append(messages[0].queue_offset)
        if self.offsets[-1] == self._at:
            await self.go_on.wait()


async def test_results_count_while_a_later_call_waits_and_a_given_up_queue_is_left_after_it():
    listener = Waits(3)
    async with pushing(listener, orderly=True) as scene:
        begin(scene, *range(10))
        await until(lambda: scene.committed == 3)
        scene.held.drop()
        listener.go_on.set()
        await until(lambda: not scene.held.consuming.locked())
        assert (scene.committed, listener.offsets) == (4, [0, 1, 2, 3])


async def test_a_run_cut_off_by_closing_counts_up_to_the_call_that_did_not_end():
    listener = Waits(3)
    async with pushing(listener, orderly=True) as scene:
        begin(scene, *range(10))
        await until(lambda: listener.offsets == [0, 1, 2, 3])
        await scene.consumption.close(0.01)
        assert (scene.committed, scene.held.count) == (3, 7)


async def test_coroutine_calls_are_counted_each_with_its_time():
    async def listen(messages, context):
        scene.clock.advance(0.001)

    async with pushing(listen, orderly=True) as scene:
        begin(scene, *range(8))
        await until(lambda: scene.committed == 8)
        status = scene.member.rates.status("T", scene.clock.monotonic())
        assert (status.consume_ok_tps, status.consume_failed_msgs) == (8, 0)
        assert status.consume_rt == pytest.approx(1.0, rel=0.05)
