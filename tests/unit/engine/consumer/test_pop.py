"""Asking a broker for messages by pops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from typing import Any

import pytest

from rmqtools.engine.consumer.listeners import Listener
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.messages.batch_ack import parse_batch_ack_body
from rmqtools.protocol.messages.stored import encode_message
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.unit.engine.consumer.pull_script import script
from tests.unit.engine.consumer.push_scene import (
    QUEUE,
    Scene,
    agrees,
    idle,
    pushing,
    stored,
    until,
    waits_for,
)


def found(*offsets: int, tags: str | None = None, times: int = 0) -> RemotingCommand:
    """What a broker says that hands messages out."""
    fields = {
        "popTime": "1700000000000",
        "invisibleTime": "60000",
        "reviveQid": "3",
        "restNum": "0",
        "startOffsetInfo": f"0 0 {offsets[0]}",
        "msgOffsetInfo": f"0 0 {','.join(map(str, offsets))}",
    }
    body = b"".join(encode_message(stored(offset, tags=tags, times=times)) for offset in offsets)
    return response(ResponseCode.SUCCESS, 0, ext_fields=fields, body=body)


scripted = partial(script, code=RequestCode.POP_MESSAGE)


@asynccontextmanager
async def popping(listener: Listener | None = None, **settings: Any) -> AsyncIterator[Scene]:
    """A consumer that pops QUEUE, until all it does is done."""
    async with pushing(listener, **settings) as scene:
        held = scene.member.held.popped[QUEUE] = PopProcessQueue(QUEUE, scene.clock)
        scene.popper.start(held)
        yield scene
        await scene.popper.close()
        await scene.pop_consumption.close(1)


def acknowledged(scene: Scene) -> list[int]:
    """The offsets acknowledged, singly or together."""
    singly = [int(asked["offset"]) for asked in scene.asked(RequestCode.ACK_MESSAGE)]
    bodies = [one.body for one in scene.broker.requests if one.code == RequestCode.BATCH_ACK_MESSAGE]
    together = [ack.offsets for body in bodies for ack in parse_batch_ack_body(body)]
    return sorted([*singly, *chain.from_iterable(together)])


def pops(scene: Scene) -> int:
    return len(scene.asked(RequestCode.POP_MESSAGE))


async def test_a_pop_asks_with_the_consumers_settings():
    async with popping(answer=scripted(), pop_batch_nums=7, pop_invisible_time=20.0) as scene:
        await until(lambda: pops(scene))
        (asked,) = scene.asked(RequestCode.POP_MESSAGE)

    wanted = {
        "consumerGroup": "g",
        "topic": "T",
        "queueId": "0",
        "maxMsgNums": "7",
        "invisibleTime": "20000",
        "pollTime": "15000",
        "bornTime": str(scene.clock.now_ms()),
        "initMode": "1",
        "expType": "TAG",
        "exp": "*",
        "order": "false",
        "bname": "broker-a",
    }
    assert {name: asked.get(name) for name in wanted} == wanted


async def test_what_is_popped_is_handed_out_and_acknowledged_and_the_next_pop_asked_at_once():
    async with popping(answer=scripted(found(4, 5), found(6))) as scene:
        held = scene.member.held.popped[QUEUE]
        await until(lambda: pops(scene) == 3 and held.wait_ack_count == 0)

    assert sorted(scene.heard) == [[4], [5], [6]]
    assert acknowledged(scene) == [4, 5, 6]


@pytest.mark.parametrize(
    "code", [ResponseCode.POLLING_TIMEOUT, ResponseCode.FLOW_CONTROL, ResponseCode.POLLING_FULL]
)
async def test_a_broker_that_gives_nothing_is_asked_again(code):
    nothing = response(code, 0)
    async with popping(answer=scripted(nothing, nothing, found(4)), delay_after_error=0.02) as scene:
        await until(lambda: scene.clock.advance(0.02) or scene.heard == [[4]])


async def test_messages_of_other_tags_and_those_tried_too_often_are_acknowledged_unheard():
    answers = (found(4, tags="B"), found(5, tags="A", times=17), found(6, tags="A", times=16))
    async with popping(answer=scripted(*answers)) as scene:
        scene.member.subscriptions.want("T", tags="A")
        held = scene.member.held.popped[QUEUE]
        await until(lambda: pops(scene) == 4 and held.wait_ack_count == 0)

    assert scene.heard == [[6]]
    assert sorted(asked["offset"] for asked in scene.asked(RequestCode.ACK_MESSAGE)) == ["4", "5", "6"]


async def test_while_too_many_wait_for_their_listener_nothing_is_popped():
    gate = asyncio.Event()

    answers = scripted(found(4, 5, 6), found(7))
    async with popping(waits_for(gate), answer=answers, pop_threshold_for_queue=2) as scene:
        held = scene.member.held.popped[QUEUE]
        await until(lambda: held.wait_ack_count == 3)
        await idle()
        before = pops(scene)
        gate.set()
        await until(lambda: pops(scene) == 3)

    assert before == 1


async def test_a_queue_that_is_dropped_is_popped_no_more():
    async with popping(answer=scripted(found(4), found(5))) as scene:
        scene.member.held.popped[QUEUE].drop()
        await idle()

    assert pops(scene) == 0


async def test_a_topic_that_is_unsubscribed_is_not_popped_any_more_and_what_comes_is_left_to_others():
    def answer(request: RemotingCommand) -> RemotingCommand | None:
        if request.code != RequestCode.POP_MESSAGE:
            return agrees(request)
        scene.consumer.unsubscribe("T")
        return found(4, tags="B")

    async with popping(answer=answer) as scene:
        scene.member.subscriptions.want("T", tags="A")
        held = scene.member.held.popped[QUEUE]
        await until(lambda: pops(scene))
        await idle(200)

    assert (pops(scene), scene.heard, held.wait_ack_count) == (1, [], 0)
    assert scene.asked(RequestCode.ACK_MESSAGE) == []


@pytest.mark.process
@pytest.mark.parametrize(
    "code", [ResponseCode.POLLING_TIMEOUT, ResponseCode.PULL_NOT_FOUND, ResponseCode.FLOW_CONTROL]
)
async def test_a_broker_that_answers_pops_at_once_and_without_messages_is_asked_rarely(code):
    async with popping(answer=lambda request: response(code, 0)) as scene:
        for _ in range(200):
            scene.clock.advance(0.05)
            await asyncio.sleep(0.05)

    assert 2 <= pops(scene) <= 30
