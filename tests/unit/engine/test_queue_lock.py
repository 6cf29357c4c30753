import json

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.command import response
from tests.support.scripted_peer import ScriptedPeer, run
from tests.unit.engine.push_scene import QUEUE, pushing

SECOND = MessageQueue("T", "broker-a", 1)
ELSEWHERE = MessageQueue("T", "broker-b", 0)


def grants(*numbers: int):
    def answer(request):
        queues = [{"topic": "T", "brokerName": "broker-a", "queueId": number} for number in numbers]
        return response(ResponseCode.SUCCESS, 0, body=json.dumps({"lockOKMQSet": queues}).encode())

    return answer


def test_each_lock_is_told_granted_or_refused_and_a_broker_is_asked_once_for_all():
    async def scenario():
        async with pushing(answer=grants(1), orderly=True) as scene:
            assert await scene.core.locks.lock([QUEUE, SECOND]) == {QUEUE: False, SECOND: True}
            (asked,) = scene.broker.requests
            body = json.loads(asked.body)
            assert (body["consumerGroup"], body["clientId"]) == ("g", scene.core.client.client_id)
            assert len(body["mqSet"]) == 2

    run(scenario)


def test_of_a_broker_that_does_not_answer_nothing_is_known(caplog):
    async def scenario():
        async with pushing(answer=grants(0), orderly=True) as scene:
            scene.core.client.routes.tables.broker_addrs["broker-b"] = {0: "127.0.0.1:1"}
            assert await scene.core.locks.lock([QUEUE, ELSEWHERE]) == {QUEUE: True}
            await scene.core.locks.unlock([ELSEWHERE])

    run(scenario)
    assert "lock_failed" in caplog.text
    assert "unlock_failed" in caplog.text


def test_renewed_locks_are_noted_refused_ones_too_and_unanswered_ones_stay():
    async def scenario():
        async with ScriptedPeer().serving(), pushing(answer=grants(1), orderly=True) as scene:
            scene.core.client.routes.tables.broker_addrs["broker-b"] = {0: "127.0.0.1:1"}
            table = scene.core.table
            for queue in (SECOND, ELSEWHERE):
                table[queue] = scene.core.begin(queue, 0)
                table[queue].lock(queue is ELSEWHERE)
            await scene.core.renew_locks()
            assert {queue: held.is_locked for queue, held in table.items()} == {
                QUEUE: False,
                SECOND: True,
                ELSEWHERE: True,
            }
            assert {one.code for one in scene.broker.requests} == {RequestCode.LOCK_BATCH_MQ}

    run(scenario)
