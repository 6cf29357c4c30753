"""Popped messages and blocking listeners: threads take what waits; each message is acknowledged by itself."""

import asyncio

import pytest

from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.model.codes import RequestCode
from tests.unit.engine.consumer.blocking_scene import PATIENCE, Heard, blocking, until
from tests.unit.engine.consumer.test_consume_pop import INVISIBLE, acknowledged, hidden, popped, take


async def test_a_thread_takes_all_that_waits_and_each_message_is_acknowledged():
    heard = Heard()

    async with blocking(heard) as (scene, pool):
        held = take(scene, *map(popped, range(100)))
        await until(lambda: held.wait_ack_count == 0)
        asked = scene.asked(RequestCode.ACK_MESSAGE)

        assert sorted(acknowledged(scene)) == list(range(100))
        assert [one["extraInfo"].split()[-1] for one in asked] == [one["offset"] for one in asked]
        assert {(one["consumerGroup"], one["topic"], one["queueId"], one["bname"]) for one in asked} == {
            ("g", "T", "0", "broker-a")
        }
        assert pool.count == 1
    assert heard.offsets == list(range(100))


@pytest.mark.parametrize("failure", [OSError("disk full"), SystemExit(3)])
async def test_a_failed_message_in_the_middle_is_hidden_alone(failure):
    def listen(messages, context):
        if messages[0].queue_offset == 4:
            raise failure

    async with blocking(listen) as (scene, _):
        held = take(scene, *map(popped, range(10)))
        await until(lambda: held.wait_ack_count == 0)

        assert sorted(acknowledged(scene)) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
        assert hidden(scene) == [(4, 10)]


def given_up(scene, held: PopProcessQueue) -> None:
    held.drop()


def visible(scene, held: PopProcessQueue) -> None:
    scene.clock.advance(INVISIBLE)


@pytest.mark.parametrize(("ends", "of_the_call"), [(given_up, [3]), (visible, [])])
async def test_after_a_run_is_cut_off_no_call_begins_and_the_rest_is_left_to_others(ends, of_the_call):
    heard = Heard(3)

    async with blocking(heard) as (scene, _):
        held = take(scene, *map(popped, range(6)))
        await until(lambda: held.wait_ack_count == 3)
        ends(scene, held)
        heard.go_on.set()
        await until(lambda: held.wait_ack_count == 0)

        assert sorted(acknowledged(scene)) == [0, 1, 2, *of_the_call]
        assert hidden(scene) == []
    assert heard.offsets == [0, 1, 2, 3]


async def test_closing_waits_for_the_call_under_way_and_acknowledges_it():
    heard = Heard(2)

    async with blocking(heard) as (scene, _):
        held = take(scene, *map(popped, range(6)))
        await asyncio.to_thread(heard.reached[2].wait, PATIENCE)
        closing = asyncio.create_task(scene.pop_consumption.close(PATIENCE))
        await until(lambda: held.wait_ack_count == 1)
        assert not closing.done()
        heard.go_on.set()
        await closing
        assert (sorted(acknowledged(scene)), held.wait_ack_count) == ([0, 1, 2], 0)
    assert heard.offsets == [0, 1, 2]


async def test_closing_leaves_a_call_that_does_not_end_unacknowledged():
    heard = Heard(2)

    async with blocking(heard) as (scene, _):
        held = take(scene, *map(popped, range(6)))
        await asyncio.to_thread(heard.reached[2].wait, PATIENCE)
        await until(lambda: held.wait_ack_count == 4)
        await scene.pop_consumption.close(0.01)
        assert (sorted(acknowledged(scene)), held.wait_ack_count) == ([0, 1], 0)
        heard.go_on.set()
    assert heard.offsets == [0, 1, 2]
