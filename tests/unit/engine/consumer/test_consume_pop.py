"""The handling of popped messages, observed by the requests to their broker."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from rmqtools.engine.consumer.listeners import Listener
from rmqtools.engine.consumer.workers import Ended
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.consume import ConsumeConcurrentlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.protocol.headers.pop_extra_info import RETRY_TOPIC, PopExtraInfo, format_extra_info
from rmqtools.protocol.messages.batch_ack import parse_batch_ack_body
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.unit.engine.consumer.blocking_scene import PATIENCE, Heard, in_both_ways, until
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, agrees, pushing, stored

INVISIBLE = 60.0
INFO = PopExtraInfo(
    start_offset=0,
    pop_time=1_700_000_000_000,
    invisible_time=60_000,
    revive_qid=3,
    topic_type="0",
    broker_name="broker-a",
    queue_id=0,
    queue_offset=4,
)


def popped(offset: int, *, times: int = 0, type_: str = "0", age: float = 0.0) -> MessageExt:
    info = replace(INFO, topic_type=type_, queue_offset=offset)
    born = INFO.pop_time - round(age * 1000)
    properties = {PROPERTY_POP_CK: format_extra_info(info)}
    return replace(stored(offset, times=times), properties=properties, born_timestamp_ms=born)


def take(scene: Scene, *messages: MessageExt) -> PopProcessQueue:
    held = PopProcessQueue(QUEUE, scene.clock)
    held.found(len(messages))
    scene.pop_consumption.consume(held, list(messages))
    return held


def acknowledged(scene: Scene) -> list[int]:
    return [int(asked["offset"]) for asked in scene.asked(RequestCode.ACK_MESSAGE)]


def hidden(scene: Scene) -> list[tuple[int, int]]:
    asked = scene.asked(RequestCode.CHANGE_MESSAGE_INVISIBLETIME)
    return [(int(each["offset"]), int(each["invisibleTime"]) // 1000) for each in asked]


def answering(status: ConsumeConcurrentlyStatus, **settings: object) -> Listener:
    async def listen(messages, context) -> ConsumeConcurrentlyStatus:
        for name, value in settings.items():
            setattr(context, name, value)
        return status

    return listen


LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


async def settled(listener: Listener | None, *messages: MessageExt, **settings: Any) -> Scene:
    """The scene when nothing is left of these messages."""
    async with pushing(listener, **settings) as scene:
        held = take(scene, *messages)
        await until(lambda: held.wait_ack_count == 0)
    return scene


@in_both_ways
async def test_each_message_is_acknowledged_with_its_own_text(consuming):
    async with consuming(heard := Heard()) as scene:
        held = take(scene, *map(popped, range(10)))
        await until(lambda: held.wait_ack_count == 0)
        asked = scene.asked(RequestCode.ACK_MESSAGE)

    assert heard.offsets == list(range(10))
    assert sorted(acknowledged(scene)) == list(range(10))
    assert [one["extraInfo"].split()[-1] for one in asked] == [one["offset"] for one in asked]
    assert {(one["consumerGroup"], one["topic"], one["queueId"], one["bname"]) for one in asked} == {
        ("g", "T", "0", "broker-a")
    }


async def test_a_message_from_the_retry_topic_is_acknowledged_there():
    scene = await settled(None, popped(4, type_=RETRY_TOPIC))

    assert [asked["topic"] for asked in scene.asked(RequestCode.ACK_MESSAGE)] == ["%RETRY%g_T"]


@pytest.mark.parametrize(
    ("listener", "messages", "settings", "taken", "comes_again"),
    [
        pytest.param(
            answering(LATER),
            [popped(4), popped(5, times=1), popped(6, times=2)],
            {},
            [],
            [(4, 10), (5, 30), (6, 60)],
            id="later-with-every-try",
        ),
        pytest.param(
            answering(LATER, delay_level_when_next_consume=2),
            [popped(4)],
            {},
            [],
            [(4, 60)],
            id="when-the-listener-chooses",
        ),
        pytest.param(
            answering(SUCCESS, ack_index=0),
            [popped(4), popped(5), popped(6)],
            {"consume_message_batch_max_size": 3},
            [4],
            [(5, 10), (6, 10)],
            id="behind-the-ack-index",
        ),
        pytest.param(
            answering(LATER),
            [popped(4, times=3, age=100), popped(5, times=3, age=15_000)],
            {"max_reconsume_times": 3},
            [5],
            [(4, 120)],
            id="less-often-if-tried-too-often-until-it-is-too-old",
        ),
    ],
)
async def test_a_failed_message_is_hidden_until_it_comes_again(
    listener, messages, settings, taken, comes_again
):
    scene = await settled(listener, *messages, **settings)

    assert (acknowledged(scene), sorted(hidden(scene))) == (taken, comes_again)


async def test_the_listener_may_make_a_dead_letter():
    scene = await settled(answering(LATER, delay_level_when_next_consume=-1), popped(4))

    (sent,) = scene.asked(RequestCode.CONSUMER_SEND_MSG_BACK)
    assert (sent["offset"], sent["delayLevel"], acknowledged(scene)) == ("400", "-1", [4])


@in_both_ways
@pytest.mark.parametrize("failure", [OSError("disk full"), asyncio.CancelledError()])
async def test_a_failed_message_in_the_middle_is_hidden_alone(consuming, failure):
    def listen(messages, context):
        if messages[0].queue_offset == 4:
            raise failure

    async with consuming(listen) as scene:
        held = take(scene, *map(popped, range(10)))
        await until(lambda: held.wait_ack_count == 0)

    assert sorted(acknowledged(scene)) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert hidden(scene) == [(4, 10)]


async def test_messages_that_waited_beyond_their_invisible_time_are_left_to_others():
    async with pushing() as scene:
        held = take(scene, popped(4))
        scene.clock.advance(INVISIBLE)
        await until(lambda: held.wait_ack_count == 0)

        assert (scene.heard, acknowledged(scene)) == ([], [])


async def test_a_thread_acknowledges_together_until_one_of_the_messages_may_be_visible_again():
    async with pushing() as scene:
        held = PopProcessQueue(QUEUE, scene.clock)
        (early,) = scene.pop_consumption._arrange(held, [popped(0)])
        scene.clock.advance(INVISIBLE - 1)
        (late,) = scene.pop_consumption._arrange(held, [popped(1)])
        ended = [Ended(one, 0.0, list(one.calls)) for one in (early, late)]
        request = scene.pop_consumption.acknowledgement(ended)
        scene.clock.advance(1)

        assert request is not None
        (acknowledged,) = parse_batch_ack_body(request.body)
        assert acknowledged.offsets == [0, 1]
        assert scene.pop_consumption.acknowledgement(ended) is None


def given_up(scene: Scene, held: PopProcessQueue) -> None:
    held.drop()


def visible(scene: Scene, held: PopProcessQueue) -> None:
    scene.clock.advance(INVISIBLE)


@in_both_ways
@pytest.mark.parametrize(("ends", "of_the_call"), [(given_up, [3]), (visible, [])])
async def test_after_a_run_is_cut_off_no_call_begins_and_the_rest_is_left_to_others(
    consuming, ends, of_the_call
):
    heard = Heard(3)

    async with consuming(heard) as scene:
        held = take(scene, *map(popped, range(6)))
        await until(lambda: heard.reached[3].is_set() and held.wait_ack_count == 3)
        ends(scene, held)
        heard.go_on.set()
        await until(lambda: held.wait_ack_count == 0)

        assert sorted(acknowledged(scene)) == [0, 1, 2, *of_the_call]
        assert hidden(scene) == []
    assert heard.offsets == [0, 1, 2, 3]


@in_both_ways
async def test_closing_waits_for_the_call_under_way_and_acknowledges_it(consuming):
    heard = Heard(2)

    async with consuming(heard) as scene:
        held = take(scene, *map(popped, range(6)))
        await until(heard.reached[2].is_set)
        closing = asyncio.create_task(scene.pop_consumption.close(PATIENCE))
        await until(lambda: held.wait_ack_count == 1)
        assert not closing.done()
        heard.go_on.set()
        await closing
        assert (sorted(acknowledged(scene)), held.wait_ack_count) == ([0, 1, 2], 0)
    assert heard.offsets == [0, 1, 2]


@in_both_ways
async def test_closing_leaves_a_call_that_does_not_end_unacknowledged(consuming):
    heard = Heard(2)

    async with consuming(heard) as scene:
        held = take(scene, *map(popped, range(6)))
        await until(lambda: heard.reached[2].is_set() and held.wait_ack_count == 4)
        await scene.pop_consumption.close(0.01)
        assert (sorted(acknowledged(scene)), held.wait_ack_count) == ([0, 1], 0)
        heard.go_on.set()
    assert heard.offsets == [0, 1, 2]


async def test_what_the_broker_does_not_take_is_left_to_come_again():
    def answer(request: RemotingCommand) -> RemotingCommand:
        if request.code == RequestCode.ACK_MESSAGE:
            return response(ResponseCode.NO_MESSAGE, 0, remark="gone")
        return agrees(request)

    scene = await settled(None, popped(4), popped(5), answer=answer)

    assert sorted(acknowledged(scene)) == [4, 5]
