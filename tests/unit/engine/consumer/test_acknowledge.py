"""Acknowledging many popped messages: together where the broker knows how, and each exactly as consumed."""

import asyncio

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.policy.endpoint.versions import parse_version
from rmqtools.protocol.messages.batch_ack import parse_batch_ack_body
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.support.scripted_peer import Script
from tests.unit.engine.consumer.push_scene import Scene, agrees, idle, pushing, until
from tests.unit.engine.consumer.test_consume_pop import acknowledged, popped, take

MANY = RequestCode.BATCH_ACK_MESSAGE


def together(scene: Scene) -> list[list[int]]:
    """The offsets of each request that acknowledges many."""
    bodies = [request.body for request in scene.broker.requests if request.code == MANY]
    return [sorted(offset for ack in parse_batch_ack_body(body) for offset in ack.offsets) for body in bodies]


def show_version(scene: Scene, version: str) -> None:
    scene.popper._acknowledger.note_version("broker-a", parse_version(version))


def many_answered(answer: RemotingCommand | None) -> Script:
    """Agree to everything else. None: silence."""
    return lambda request: answer if request.code == MANY else agrees(request)


async def test_what_is_consumed_while_a_request_is_on_the_wire_shares_the_next():
    async with pushing(answer=many_answered(None)) as scene:
        show_version(scene, "5.5.0")
        take(scene, popped(4), popped(5))
        await until(lambda: together(scene))
        take(scene, popped(6))
        take(scene, popped(7), popped(8))
        await until(lambda: len(scene.heard) == 5)
        await idle()
        waiting = together(scene)
        for request in [one for one in scene.broker.requests if one.code == MANY]:
            scene.broker.peers[0].answer(request, response(ResponseCode.SUCCESS, 0))
        await until(lambda: len(together(scene)) == 2)

        assert waiting == [[4, 5]]
        assert together(scene)[1] == [6, 7, 8]
        assert acknowledged(scene) == []


async def test_brokers_before_5_1_3_get_one_request_for_each_message():
    async with pushing() as scene:
        show_version(scene, "5.5.0")
        show_version(scene, "5.1.2")
        held = take(scene, popped(4), popped(5))
        await until(lambda: held.wait_ack_count == 0)

        assert (together(scene), sorted(acknowledged(scene))) == ([], [4, 5])


async def test_what_a_broker_refuses_together_is_acknowledged_singly():
    refusal = response(ResponseCode.SYSTEM_ERROR, 0, remark="scripted")
    async with pushing(answer=many_answered(refusal)) as scene:
        show_version(scene, "5.5.0")
        held = take(scene, popped(4), popped(5))
        await until(lambda: held.wait_ack_count == 0)

        assert (together(scene), sorted(acknowledged(scene))) == ([[4, 5]], [4, 5])


async def test_a_lost_answer_is_logged_and_consuming_goes_on(caplog):
    async with pushing(answer=many_answered(None), request_timeout=0.05) as scene:
        show_version(scene, "5.5.0")
        held = take(scene, popped(4), popped(5))
        await until(lambda: held.wait_ack_count == 0)

        assert (together(scene), acknowledged(scene)) == ([[4, 5]], [])
        assert "popped_messages_not_settled" in caplog.text


async def test_closing_waits_for_what_is_on_the_wire_and_what_waits_behind_it():
    async with pushing(answer=many_answered(None)) as scene:
        show_version(scene, "5.5.0")
        take(scene, popped(4), popped(5))
        await until(lambda: together(scene))
        held = take(scene, popped(6), popped(7))
        await until(lambda: len(scene.heard) == 4)
        closing = asyncio.create_task(scene.pop_consumption.close(5))
        await idle()
        (first,) = [one for one in scene.broker.requests if one.code == MANY]
        scene.broker.peers[0].answer(first, response(ResponseCode.SUCCESS, 0))
        await until(lambda: len(together(scene)) == 2)
        (_, second) = [one for one in scene.broker.requests if one.code == MANY]
        scene.broker.peers[0].answer(second, response(ResponseCode.SUCCESS, 0))
        await closing

        assert (together(scene), held.wait_ack_count) == ([[4, 5], [6, 7]], 0)
