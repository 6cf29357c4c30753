"""``max_messages_per_second``: the time between fetches of pulled and popped queues."""

import asyncio

import pytest

from rmqtools.model.queue import MessageQueue
from tests.unit.engine.consumer.pull_scene import BrokerSet, polled, reading
from tests.unit.engine.consumer.pull_script import PULL, asked_offsets, found, pulls, script
from tests.unit.engine.consumer.push_scene import QUEUE, idle, pushing, until
from tests.unit.engine.consumer.test_pop import found as popped
from tests.unit.engine.consumer.test_pop import popping, pops, scripted


async def test_a_pull_waits_until_the_messages_of_the_pull_before_it_are_within_the_limit():
    answers = script(found(0, 1, 2), found(3))
    async with pushing(answer=answers, max_messages_per_second=10) as scene:
        await pulls(scene, 1)
        await until(lambda: scene.heard == [[0], [1], [2]])
        await scene.pass_time(0.29)
        before = asked_offsets(scene)
        await scene.pass_time(0.02)
        await pulls(scene, 2)
        assert (before, asked_offsets(scene)) == ([0], [0, 3])


async def test_no_pull_leaves_while_the_messages_of_an_answer_are_not_counted_yet():
    answers = script(found(0), found(1), found(2))
    async with pushing(answer=answers, max_messages_per_second=10) as scene:
        await pulls(scene, 1)
        for number in (2, 3):
            await until(lambda: scene.is_resting)
            await idle()
            assert len(scene.asked(PULL)) == number - 1
            await scene.pass_time(0.11)
            await pulls(scene, number)


async def test_all_queues_of_a_member_share_one_limit():
    async with pushing(answer=script(found(0, 1)), max_messages_per_second=10) as scene:
        second = scene.hold(MessageQueue("T", "broker-a", 1))
        await pulls(scene, 1)
        await until(lambda: len(scene.heard) == 2)
        scene.puller.start(second)
        await idle()
        before = len(scene.asked(PULL))
        await scene.pass_time(0.21)
        await pulls(scene, 3)
        second.drop()
        assert before == 1


@pytest.mark.parametrize(("limit", "asked"), [(4, "4"), (0.5, "1"), (1000, "32")])
async def test_a_pull_asks_for_no_more_than_a_second_allows(limit, asked):
    async with pushing(answer=script(), max_messages_per_second=limit) as scene:
        await pulls(scene, 1)
        assert scene.asked(PULL)[0]["maxMsgNums"] == asked


async def test_a_queue_that_waits_for_the_limit_neither_expires_nor_ages_its_listeners():
    async with pushing(answer=script(found(0)), max_messages_per_second=0.001) as scene:
        await pulls(scene, 1)
        await until(lambda: scene.committed == 1)
        for _ in range(9):
            await scene.pass_time(100)
        assert (scene.held.is_pull_expired, scene.held.count, len(scene.asked(PULL))) == (False, 0, 1)


async def test_what_is_given_up_while_it_waits_for_the_limit_is_not_pulled():
    async with pushing(answer=script(found(0), found(1)), max_messages_per_second=1) as scene:
        await pulls(scene, 1)
        await until(lambda: scene.committed == 1)
        scene.held.drop()
        await until(lambda: not scene.puller.running)
        assert len(scene.asked(PULL)) == 1


async def test_a_pop_waits_as_a_pull_does_so_that_no_message_is_invisible_meanwhile():
    answers = scripted(popped(4, 5), popped(6))
    async with popping(answer=answers, max_messages_per_second=10) as scene:
        held = scene.member.held.popped[QUEUE]
        await until(lambda: len(scene.heard) == 2 and held.wait_ack_count == 0)
        await scene.pass_time(0.19)
        before = pops(scene)
        await scene.pass_time(0.02)
        await until(lambda: scene.heard == [[4], [5], [6]])

    assert before == 1


async def test_a_pull_consumer_keeps_to_the_limit():
    async with reading(BrokerSet(30), max_messages_per_second=500, pull_batch_size=5) as consumer:
        now = asyncio.get_running_loop().time
        began = now()
        assert await polled(consumer, 30) == list(range(30))
        assert now() - began >= 25 / 500
