"""Which broker a failed message of a static topic is sent back to: the one that has stored it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.codes import RequestCode
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from rmqtools.model.queue import MessageQueue
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.consumer.push_scene import Scene, agrees, pushing, stored, until

SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK
LOGIC_QUEUE = MessageQueue("T", "__syslo__global__", 3)
LETTER = replace(stored(0), broker_name=LOGIC_QUEUE.broker_name)  # the stored queue id is the broker's own


@asynccontextmanager
async def of_static_topic(listener, **settings) -> AsyncIterator[tuple[Scene, ProcessQueue]]:
    """A consumer that holds a logic queue, which broker-a has now; its other queue 0 is elsewhere."""
    async with pushing(listener, **settings) as scene:
        endpoints = scene.client.routes.tables.endpoints
        endpoints.update({LOGIC_QUEUE: "broker-a", replace(LOGIC_QUEUE, queue_id=0): "broker-b"})
        held = ProcessQueue(LOGIC_QUEUE, scene.clock, 0)
        held.lock(True)
        scene.member.held.pulled[LOGIC_QUEUE] = held
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
        scene.fetching.take(held, held.put([LETTER]))
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
