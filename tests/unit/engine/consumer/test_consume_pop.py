"""The handling of popped messages, observed by the requests to their broker."""

import asyncio
from dataclasses import replace

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
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, agrees, idle, pushing, stored, until

INVISIBLE = 60.0


def popped(offset: int, *, times: int = 0, type_: str = "0", age: float = 0.0) -> MessageExt:
    info = PopExtraInfo(
        start_offset=0,
        pop_time=1_700_000_000_000,
        invisible_time=round(INVISIBLE * 1000),
        revive_qid=3,
        topic_type=type_,
        broker_name="broker-a",
        queue_id=0,
        queue_offset=offset,
    )
    born = 1_700_000_000_000 - round(age * 1000)
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


async def test_each_message_is_acknowledged_with_its_own_text():
    async with pushing() as scene:
        held = take(scene, popped(4), popped(5))
        await until(lambda: held.wait_ack_count == 0)
        asked = scene.asked(RequestCode.ACK_MESSAGE)

        assert sorted(scene.heard) == [[4], [5]]
        assert sorted(acknowledged(scene)) == [4, 5]
        assert {each["consumerGroup"] for each in asked} == {"g"}
        assert {each["topic"] for each in asked} == {"T"}
        assert {each["extraInfo"].split()[-1] for each in asked} == {"4", "5"}


async def test_a_message_from_the_retry_topic_is_acknowledged_there():
    async with pushing() as scene:
        held = take(scene, popped(4, type_=RETRY_TOPIC))
        await until(lambda: held.wait_ack_count == 0)

        assert [asked["topic"] for asked in scene.asked(RequestCode.ACK_MESSAGE)] == ["%RETRY%g_T"]


async def test_a_failed_message_is_hidden_longer_with_every_try():
    async with pushing(answering(LATER)) as scene:
        held = take(scene, popped(4), popped(5, times=1), popped(6, times=2))
        await until(lambda: held.wait_ack_count == 0)

        assert sorted(hidden(scene)) == [(4, 10), (5, 30), (6, 60)]
        assert acknowledged(scene) == []


async def test_the_listener_may_choose_the_delay():
    async with pushing(answering(LATER, delay_level_when_next_consume=2)) as scene:
        held = take(scene, popped(4))
        await until(lambda: held.wait_ack_count == 0)

        assert hidden(scene) == [(4, 60)]


async def test_the_listener_may_make_a_dead_letter():
    async with pushing(answering(LATER, delay_level_when_next_consume=-1)) as scene:
        held = take(scene, popped(4))
        await until(lambda: held.wait_ack_count == 0)
        (sent,) = scene.asked(RequestCode.CONSUMER_SEND_MSG_BACK)

        assert (sent["offset"], sent["delayLevel"], acknowledged(scene)) == ("400", "-1", [4])


async def test_of_a_batch_what_is_behind_the_ack_index_comes_again():
    listener = answering(SUCCESS, ack_index=0)
    async with pushing(listener, consume_message_batch_max_size=3) as scene:
        held = take(scene, popped(4), popped(5), popped(6))
        await until(lambda: held.wait_ack_count == 0)

        assert acknowledged(scene) == [4]
        assert hidden(scene) == [(5, 10), (6, 10)]


async def test_a_message_tried_too_often_goes_on_less_often_until_it_is_too_old():
    async with pushing(answering(LATER), max_reconsume_times=3) as scene:
        held = take(scene, popped(4, times=3, age=100), popped(5, times=3, age=15_000))
        await until(lambda: held.wait_ack_count == 0)

        assert hidden(scene) == [(4, 120)]
        assert acknowledged(scene) == [5]


async def test_messages_that_waited_beyond_their_invisible_time_are_left_to_others():
    async with pushing() as scene:
        held = take(scene, popped(4))
        scene.clock.advance(INVISIBLE)
        await until(lambda: held.wait_ack_count == 0)

        assert scene.heard == []
        assert acknowledged(scene) == []


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


async def test_a_listener_that_outlasts_the_invisible_time_acknowledges_nothing():
    gate = asyncio.Event()

    async def listen(messages, context) -> None:
        await gate.wait()

    async with pushing(listen) as scene:
        held = take(scene, popped(4))
        await idle()
        scene.clock.advance(INVISIBLE)
        gate.set()
        await until(lambda: held.wait_ack_count == 0)

        assert acknowledged(scene) == []
        assert hidden(scene) == []


async def test_after_a_queue_is_given_up_what_waits_is_left_and_what_is_finished_is_acknowledged():
    gate = asyncio.Event()

    async def listen(messages, context) -> None:
        await gate.wait()

    async with pushing(listen, consume_threads=1) as scene:
        held = take(scene, popped(4), popped(5))
        await idle()
        held.drop()
        gate.set()
        await until(lambda: held.wait_ack_count == 0)

        assert acknowledged(scene) == [4]


async def test_closing_waits_for_listeners_and_starts_no_more():
    gate = asyncio.Event()

    async def listen(messages, context) -> None:
        await gate.wait()

    async with pushing(listen, consume_threads=1) as scene:
        held = take(scene, popped(4), popped(5))
        await idle()
        closing = asyncio.create_task(scene.pop_consumption.close(10))
        await idle()
        gate.set()
        await closing

        assert held.wait_ack_count == 0
        assert acknowledged(scene) == [4]


async def test_what_the_broker_does_not_take_is_left_to_come_again():
    def answer(request: RemotingCommand) -> RemotingCommand:
        if request.code == RequestCode.ACK_MESSAGE:
            return response(ResponseCode.NO_MESSAGE, 0, remark="gone")
        return agrees(request)

    async with pushing(answer=answer) as scene:
        held = take(scene, popped(4), popped(5))
        await until(lambda: held.wait_ack_count == 0)

        assert sorted(acknowledged(scene)) == [4, 5]
