"""Answers to pops with broken messages and stored batches."""

import asyncio
from dataclasses import replace
from typing import Any

from rmqtools.engine.consumer.listeners import Listener
from rmqtools.engine.consumer.running_info import running_info
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.messages.properties import parse_properties
from rmqtools.protocol.messages.stored import decode_message, encode_message
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.support.batch_topics import keeping_batches
from tests.unit.engine.consumer.blocking_scene import Heard, coroutine_of
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, idle, refuses, until
from tests.unit.engine.consumer.test_decode_answers import Reader, batch, changed, corrupt, good, headless
from tests.unit.engine.consumer.test_pop import acknowledged, found, popping, scripted


def popped(*messages: bytes, offsets: str) -> RemotingCommand:
    fields = dict(found(0).ext_fields) | {
        "startOffsetInfo": "0 0 0",
        "msgOffsetInfo": f"0 0 {offsets}",
    }
    return response(ResponseCode.SUCCESS, 0, ext_fields=fields, body=b"".join(messages))


async def acknowledge_of(
    *answers: RemotingCommand, count: int, listener: Listener | None = None, **settings: Any
) -> Scene:
    """The scene when of these answers to pops so many messages are acknowledged."""
    async with popping(listener, answer=scripted(*answers), **settings) as scene:
        await until(lambda: len(acknowledged(scene)) == count)
    return scene


def hidden(scene: Scene) -> list[int]:
    return [int(fields["offset"]) for fields in scene.asked(RequestCode.CHANGE_MESSAGE_INVISIBLETIME)]


async def test_a_pop_hands_out_a_corrupt_message_alone_and_it_is_tried_again():
    answer = scripted(popped(good(0), corrupt(1), good(2), offsets="0,1,2"))
    async with popping(listener := Reader(), answer=answer, consume_message_batch_max_size=10) as scene:
        await until(lambda: len(acknowledged(scene)) == 2 and hidden(scene))

    assert sorted(listener.given) == [[0], [1], [2]]
    assert (acknowledged(scene), hidden(scene)) == ([0, 2], [1])


async def test_a_pop_passes_over_a_broken_head_and_acknowledges_it_so_that_it_does_not_come_for_ever(caplog):
    scene = await acknowledge_of(popped(good(0), headless(1), good(2), offsets="0,1,2"), count=3)

    assert (acknowledged(scene), scene.heard) == ([0, 1, 2], [[0], [2]])
    assert running_info(scene.member).properties["PROP_RMQTOOLS_PASSED_OVER"] == "1"
    (broken,) = scene.asked(RequestCode.ACK_MESSAGE)
    assert broken["extraInfo"] == "0 1700000000000 60000 3 0 broker-a 0 1"
    assert "message at queue offset 1 of" in caplog.text


async def test_a_pop_hands_out_what_stands_in_front_of_an_impossible_size(caplog):
    scene = await acknowledge_of(popped(good(0), changed(1, 0, 0), offsets="0,1"), count=1)

    assert (acknowledged(scene), scene.heard) == ([0], [[0]])
    assert "pop_answer_torn" in caplog.text


async def test_a_popped_batch_is_acknowledged_once_when_all_its_messages_are_consumed():
    answer, listener = popped(batch(0, 3), good(3), offsets="0,3"), Reader()
    scene = await acknowledge_of(answer, count=2, listener=listener)

    assert sorted(listener.bodies) == [b"0", b"1", b"2", b"3"]
    assert (acknowledged(scene), hidden(scene)) == ([0, 3], [])


async def fails_for_one(messages, context):
    if messages[0].body == b"1":
        raise OSError("disk full")


def retried(scene: Scene) -> list[tuple[str, str, bool]]:
    """Of the messages stored in the retry topic, that topic, the delay level, and whether POP_CK is left."""
    told = [parse_properties(fields["i"] or "") for fields in scene.asked(RequestCode.SEND_MESSAGE_V2)]
    topics = [fields["b"] or "" for fields in scene.asked(RequestCode.SEND_MESSAGE_V2)]
    return [(topic, text["DELAY"], "POP_CK" in text) for topic, text in zip(topics, told, strict=True)]


async def test_of_a_popped_batch_a_failed_message_goes_to_the_retry_topic_and_the_batch_is_acknowledged():
    answer = popped(batch(0, 3), good(3), offsets="0,3")
    scene = await acknowledge_of(answer, count=2, listener=fails_for_one)

    assert (acknowledged(scene), hidden(scene)) == ([0, 3], [])
    assert retried(scene) == [("%RETRY%g", "3", False)]


async def test_a_popped_batch_that_cannot_be_taken_apart_goes_to_the_retry_topic_as_it_is_stored():
    whole = replace(decode_message(batch(0, 3)), body=b"no batch")
    scene = await acknowledge_of(popped(encode_message(whole), offsets="0"), count=1, listener=Reader())

    sent = [one.body for one in scene.broker.requests if one.code == RequestCode.SEND_MESSAGE_V2]
    assert (len(retried(scene)), sent) == (1, [b"no batch"])


async def test_a_popped_batch_is_hidden_as_a_whole_where_its_failed_message_cannot_be_stored_again():
    pops = scripted(popped(batch(0, 3), good(3), offsets="0,3"))

    def answer(request):
        return refuses(request) if request.code == RequestCode.SEND_MESSAGE_V2 else pops(request)

    async with popping(fails_for_one, answer=answer) as scene:
        await until(lambda: hidden(scene) and acknowledged(scene))

    assert (acknowledged(scene), hidden(scene)) == ([3], [0])


async def test_messages_of_a_popped_batch_that_waited_beyond_the_invisible_time_are_consumed_all_the_same():
    heard = Heard(0)

    answer = scripted(popped(batch(0, 3), offsets="0"))
    async with popping(coroutine_of(heard), answer=answer, consume_threads=1) as scene:
        await until(lambda: scene.member.held.popped[QUEUE].wait_ack_count == 3)
        scene.clock.advance(61)
        heard.go_on.set()
        await until(lambda: acknowledged(scene) == [0])


async def test_messages_of_a_popped_batch_that_no_listener_got_before_the_end_go_to_the_retry_topic():
    heard = Heard(0)

    answer = scripted(popped(batch(0, 3), offsets="0"))
    async with popping(coroutine_of(heard), answer=answer, consume_threads=1) as scene:
        await until(lambda: scene.member.held.popped[QUEUE].wait_ack_count == 3)
        closing = asyncio.create_task(scene.pop_consumption.close(10))
        await idle()
        heard.go_on.set()
        await closing

    assert len(retried(scene)) == 2
    assert acknowledged(scene) == [0]


async def test_that_stored_batches_are_popped_is_logged_once_with_the_topic_to_create(caplog):
    await acknowledge_of(popped(batch(0, 2), offsets="0"), popped(batch(2, 2), offsets="2"), count=2)

    assert caplog.text.count("stored_batches_popped") == 1
    assert "%RETRY%g_T" in caplog.text


async def test_messages_of_a_popped_batch_that_are_not_wanted_do_not_hold_up_its_acknowledgement():
    answer = keeping_batches(scripted(popped(batch(0, 4), offsets="0")))
    async with popping(answer=answer) as scene:
        scene.member.subscriptions.want("T", tags="odd")
        await until(lambda: acknowledged(scene) == [0])

    assert sorted(scene.heard) == [[1], [3]]
    assert {fields["exp"] for fields in scene.asked(RequestCode.POP_MESSAGE)} == {"*"}
