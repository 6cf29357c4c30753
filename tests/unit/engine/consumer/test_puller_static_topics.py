"""A static topic's logic queue: its broker counts otherwise, and another one may serve it tomorrow."""

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.names import with_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.wire.command import response
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.engine.consumer.pull_script import PULL, answered, asked_offsets, found, script
from tests.unit.engine.consumer.push_scene import pushing, until

LOGIC_QUEUE = MessageQueue("T", "__syslo__global__", 3)


@pytest.mark.parametrize("namespace", [None, "ns"])
async def test_messages_of_a_logic_queue_name_its_id_and_offsets_not_those_of_the_broker(namespace):
    queue = replace(LOGIC_QUEUE, topic=with_namespace("T", namespace))
    heard: list[object] = []

    async def listen(messages, context):
        heard.extend((m.broker_name, m.queue_id, m.queue_offset, m.commit_log_offset) for m in messages)

    answer = found(0, 1, topic=queue.topic)
    answer.ext_fields = {**answer.ext_fields, "offsetDelta": "100", "nextBeginOffset": "102"}
    async with pushing(listen, answer=script(answer), namespace=namespace) as scene:
        scene.client.routes.tables.endpoints[queue] = "broker-a"
        held = scene.hold(queue, 100)
        scene.puller.start(held)
        await until(lambda: scene.member.offsets.read_memory(queue) == 102)
        held.drop()
    assert heard == [("__syslo__global__", 3, 100, 0), ("__syslo__global__", 3, 101, 100)]


async def test_a_logic_queue_is_locked_and_unlocked_by_the_broker_that_serves_it():
    def grants(request):
        if request.code != RequestCode.LOCK_BATCH_MQ:
            return response(0, 0)
        queue = b'{"brokerName":"__syslo__global__","queueId":3,"topic":"T"}'
        return response(0, 0, body=b'{"lockOKMQSet":[%s]}' % queue)

    other = replace(LOGIC_QUEUE, queue_id=4)
    async with ScriptedPeer(grants).serving() as peer, pushing(answer=grants, orderly=True) as scene:
        tables = scene.client.routes.tables
        tables.broker_addrs["broker-b"] = {0: peer.addr}
        tables.endpoints.update({LOGIC_QUEUE: "broker-b", other: "broker-a"})
        assert list(await scene.member.held.lock([LOGIC_QUEUE, other])) == [LOGIC_QUEUE]
        await scene.member.held.give_up([scene.member.held.hold(LOGIC_QUEUE, 0)])
        asked = [request.code for request in peer.requests]
        assert asked[0] == RequestCode.LOCK_BATCH_MQ
        assert asked[-1] == RequestCode.UNLOCK_BATCH_MQ


TWICE = answered(ResponseCode.PULL_RETRY_IMMEDIATELY, 20000, stored=(20000, 20000))


@asynccontextmanager
async def pulling(*answers):
    async with pushing(answer=script(*answers)) as scene:
        scene.client.routes.tables.endpoints[LOGIC_QUEUE] = "broker-a"
        held = scene.hold(LOGIC_QUEUE, 10000)
        scene.puller.start(held)
        yield scene
        scene.member.held.pulled[LOGIC_QUEUE].drop()


async def test_an_offset_that_two_brokers_converted_is_not_committed():
    async with pulling(TWICE) as scene:
        await until(lambda: len(scene.asked(PULL)) == 2)
        assert asked_offsets(scene) == [10000, 20000]
        assert scene.member.offsets.read_memory(LOGIC_QUEUE) is None


async def test_behind_the_end_of_a_queue_that_moves_the_pulls_go_back_to_the_last_message():
    messages = found(0, 1)
    moved_on = {"offsetDelta": "10000", "nextBeginOffset": "10002", "maxOffset": "10002"}
    messages.ext_fields = {**messages.ext_fields, **moved_on}
    moved = answered(ResponseCode.PULL_OFFSET_MOVED, 10005, stored=(10000, 10005))
    async with pulling(messages, TWICE, moved) as scene:
        await until(lambda: len(scene.asked(PULL)) == 4)
        assert asked_offsets(scene) == [10000, 10002, 20000, 10002]
