"""A failed message goes to the broker that has stored it; one of a batch as a message of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.codes import RequestCode
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.messages.corrupt_message import corrupt_message
from rmqtools.protocol.messages.inner_batch import INNER_BATCH
from rmqtools.protocol.messages.properties import parse_properties
from tests.support.scripted_peer import ScriptedPeer, run
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, agrees, pushing, stored, until

SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK
LOGIC_QUEUE = MessageQueue("T", "__syslo__global__", 3)
LETTER = replace(stored(0), broker_name=LOGIC_QUEUE.broker_name)  # the stored queue id is the broker's own


@asynccontextmanager
async def of_static_topic(listener, **settings) -> AsyncIterator[tuple[Scene, ProcessQueue]]:
    """A consumer that holds a logic queue, which broker-a has now; its other queue 0 is elsewhere."""
    async with pushing(listener, **settings) as scene:
        endpoints = scene.client.routes.tables.endpoints
        endpoints.update({LOGIC_QUEUE: "broker-a", replace(LOGIC_QUEUE, queue_id=0): "broker-b"})
        held = scene.hold(LOGIC_QUEUE)
        try:
            yield scene, held
        finally:
            held.drop()


def send_back(scene):
    return SendBack(scene.client, "g", max_reconsume_times=16).send


async def fails(messages, context):
    return ConsumeConcurrentlyStatus.RECONSUME_LATER


async def fails_in_order(messages, context):
    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


@pytest.mark.parametrize(
    ("listener", "settings"),
    [(fails, {}), (fails_in_order, {"orderly": True, "max_reconsume_times": 0})],
    ids=["concurrently", "orderly"],
)
async def test_a_failed_message_of_a_logic_queue_goes_to_the_broker_that_has_the_queue(listener, settings):
    async with of_static_topic(listener, **settings) as (scene, held):
        scene.fetching.fetched(held, held.put([LETTER]))
        scene.consumption.work_on(held)
        await until(lambda: scene.member.offsets.read_memory(LOGIC_QUEUE) == 1)
        assert [(one["bname"], one["offset"]) for one in scene.asked(SEND_BACK)] == [("broker-a", "0")]


async def test_what_was_stored_before_its_queue_moved_goes_to_the_broker_that_still_has_it():
    async with of_static_topic(fails) as (scene, _), ScriptedPeer(agrees).serving() as former:
        scene.client.routes.tables.broker_addrs["broker-b"] = {0: former.addr}
        old = replace(LETTER, store_host=former.addr)

        assert await send_back(scene)(old, 0, queue=LOGIC_QUEUE)
        assert [request.ext_fields["bname"] for request in former.requests] == ["broker-b"]
        assert scene.asked(SEND_BACK) == []


async def test_a_message_of_the_retry_topic_goes_to_the_broker_it_came_from():
    async with pushing(fails) as scene:
        queue = MessageQueue("%RETRY%g", "broker-a", 0)

        assert await send_back(scene)(stored(0, times=1), 0, queue=queue)
        (asked,) = scene.asked(SEND_BACK)
        assert (asked["bname"], asked["originTopic"]) == ("broker-a", "T")


async def test_a_logic_queue_that_no_broker_has_leaves_its_message_here():
    async with pushing(fails) as scene:
        assert not await send_back(scene)(LETTER, 0, queue=LOGIC_QUEUE)


OF_BATCH = replace(stored(7, tags="red"), sys_flag=INNER_BATCH, offset_msg_id="ID")


def resent(message, delay_level):
    """The fields and the body of the send, and the properties in it."""
    found = []

    async def scenario():
        async with pushing() as scene:
            send_back = SendBack(scene.client, "g", max_reconsume_times=16)
            assert await send_back.send(message, delay_level, queue=QUEUE)
            found.extend(scene.broker.requests)

    run(scenario)
    (command,) = found
    assert command.code == RequestCode.SEND_MESSAGE_V2
    return command.ext_fields, command.body, parse_properties(command.ext_fields["i"])


def test_it_goes_to_the_retry_topic_with_its_own_body_tags_and_topic():
    fields, body, properties = resent(OF_BATCH, 0)

    assert (fields["b"], fields["e"], fields["f"], fields["n"]) == ("%RETRY%g", "0", "0", "broker-a")
    assert body == b"7"
    assert (properties["TAGS"], properties["RETRY_TOPIC"], properties["ORIGIN_MESSAGE_ID"]) == (
        "red",
        "T",
        "ID",
    )


@pytest.mark.parametrize(("times", "delay_level", "level"), [(0, 0, "3"), (4, 0, "7"), (4, 2, "2")])
def test_it_comes_the_later_the_more_often_it_was_tried_unless_a_level_is_given(times, delay_level, level):
    fields, _, properties = resent(replace(OF_BATCH, reconsume_times=times), delay_level)

    assert (fields["j"], fields["l"], properties["DELAY"]) == (str(times + 1), "16", level)


def test_one_that_is_not_to_be_tried_again_is_a_dead_letter_at_once():
    fields, _, properties = resent(OF_BATCH, -1)

    assert int(fields["j"]) > int(fields["l"])
    assert "DELAY" not in properties


def test_a_batch_that_cannot_be_taken_apart_goes_with_its_body_as_stored():
    fields, body, _ = resent(corrupt_message(replace(OF_BATCH, body=b"\x00\x00"), "torn"), 0)

    assert (body, fields["f"]) == (b"\x00\x00", "0")
