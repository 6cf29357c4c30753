import json

import pytest

from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.engine.group.queue_locks import QueueLocks
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.wire.command import response
from tests.unit.engine.consumer.push_scene import QUEUE, pushing

SECOND = MessageQueue("T", "broker-a", 1)
ELSEWHERE = MessageQueue("T", "broker-b", 0)


def grants(*numbers: int):
    def answer(request):
        queues = [{"topic": "T", "brokerName": "broker-a", "queueId": number} for number in numbers]
        return response(ResponseCode.SUCCESS, 0, body=json.dumps({"lockOKMQSet": queues}).encode())

    return answer


async def test_each_lock_is_told_granted_or_refused_and_a_broker_is_asked_once_for_all():
    async with pushing(answer=grants(1), orderly=True) as scene:
        assert await QueueLocks(scene.client, "g").lock([QUEUE, SECOND]) == {QUEUE: False, SECOND: True}
        (asked,) = scene.broker.requests
        body = json.loads(asked.body)
        assert (body["consumerGroup"], body["clientId"]) == ("g", scene.client.client_id)
        assert len(body["mqSet"]) == 2


async def test_of_a_broker_that_does_not_answer_nothing_is_known(caplog):
    async with pushing(answer=grants(0), orderly=True) as scene:
        scene.client.routes.tables.broker_addrs["broker-b"] = {0: "127.0.0.1:1"}
        assert await QueueLocks(scene.client, "g").lock([QUEUE, ELSEWHERE]) == {QUEUE: True}
        await QueueLocks(scene.client, "g").unlock([ELSEWHERE])
    assert "lock_failed" in caplog.text
    assert "unlock_failed" in caplog.text


async def test_renewed_locks_are_noted_refused_ones_too_and_unanswered_ones_stay():
    async with pushing(answer=grants(1), orderly=True) as scene:
        scene.client.routes.tables.broker_addrs["broker-b"] = {0: "127.0.0.1:1"}
        table = scene.member.held.pulled
        for queue in (SECOND, ELSEWHERE):
            table[queue] = ProcessQueue(queue, scene.clock, 0)
            table[queue].lock(queue is ELSEWHERE)
        await scene.member.held.renew_locks()
        assert {queue: held.is_locked for queue, held in table.items()} == {
            QUEUE: False,
            SECOND: True,
            ELSEWHERE: True,
        }
        assert {one.code for one in scene.broker.requests} == {RequestCode.LOCK_BATCH_MQ}


@pytest.mark.parametrize("body", [b"\xff", b'{"lockOKMQSet":7}', b'{"lockOKMQSet":[{"queueId":"x"}]}'])
async def test_an_answer_that_cannot_be_read_tells_nothing_about_locks(body, caplog):
    async with pushing(answer=lambda _: response(ResponseCode.SUCCESS, 0, body=body)) as scene:
        assert await QueueLocks(scene.client, "g").lock([QUEUE]) == {}
    assert "lock_failed" in caplog.text
