"""Administrators' requests that a broker forwards, and a consumer's answers."""

import asyncio
import re

import pytest

import rmqtools
from rmqtools.engine.consumer.operator_requests import OperatorRequests
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.consume import ConsumeConcurrentlyStatus
from rmqtools.model.group import ResetOffsetBody
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumeMessageDirectlyResult
from rmqtools.protocol.messages.stored import encode_message
from rmqtools.protocol.wire.bodies import (
    format_body,
    parse_consume_directly,
    parse_consumer_status,
    parse_running_info,
)
from rmqtools.protocol.wire.command import RemotingCommand, encode_command
from tests.unit.engine.consumer.push_scene import (
    QUEUE,
    Scene,
    idle,
    pushing,
    stored,
    until,
    waits_for,
)
from tests.unit.engine.consumer.test_decode_answers import corrupt


async def ask(scene: Scene, code: RequestCode, body: bytes = b"", **fields: str) -> RemotingCommand:
    """What the consumer answers its broker."""
    OperatorRequests(scene.member, scene.consumer._consume_directly).listen()
    await scene.client.remoting.connect(scene.broker.addr)
    await until(lambda: scene.broker.peers)
    asked = RemotingCommand(code, ext_fields=fields, body=body, opaque=77)
    await scene.broker.say(encode_command(asked))

    def answers() -> list[RemotingCommand]:
        return [each for each in scene.broker.requests if each.is_response and each.opaque == 77]

    await until(answers)
    return answers()[0]


async def consume(scene: Scene, message: MessageExt | bytes, group: str = "g") -> RemotingCommand:
    return await ask(
        scene,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        message if isinstance(message, bytes) else encode_message(message),
        consumerGroup=group,
        clientId=scene.client.client_id,
        brokerName="broker-a",
    )


async def consumed(scene: Scene, message: MessageExt | bytes) -> ConsumeMessageDirectlyResult:
    """The result of a message that is consumed directly."""
    answer = await consume(scene, message)
    assert answer.code == ResponseCode.SUCCESS
    return parse_consume_directly(answer.body)


async def ask_for_running_info(scene: Scene, *, group: str = "g", stack: str = "false") -> RemotingCommand:
    code = RequestCode.GET_CONSUMER_RUNNING_INFO
    return await ask(scene, code, consumerGroup=group, clientId="c", jstackEnable=stack)


async def reset(scene: Scene, offset: int, *, topic: str = "T", group: str = "g") -> None:
    body = format_body(ResetOffsetBody(offset_table={QUEUE: offset, MessageQueue("T", "broker-z", 9): 1}))
    fields = {"topic": topic, "group": group, "timestamp": "0", "isForce": "true"}
    answer = await ask(scene, RequestCode.RESET_CONSUMER_CLIENT_OFFSET, body, **fields)
    assert answer.code == ResponseCode.SUCCESS


async def test_the_running_info_tells_queues_messages_and_settings():
    async with pushing(consume_threads=3) as scene:
        scene.held.put([stored(4).with_values(body=bytes(3 * 1024 * 1024)), stored(5)])
        scene.member.offsets.update(QUEUE, 4)
        info = parse_running_info((await ask_for_running_info(scene, stack="true")).body)
        queue = info.mq_table[QUEUE]

        assert (queue.commit_offset, queue.cached_msg_count, queue.locked) == (4, 2, True)
        assert (queue.cached_msg_min_offset, queue.cached_msg_max_offset) == (4, 5)
        assert queue.cached_msg_size_in_mib == 3
        assert info.properties["PROP_THREADPOOL_CORE_SIZE"] == "3"
        assert info.properties["PROP_CONSUMEORDERLY"] == "false"
        assert info.properties["PROP_RMQTOOLS_STRATEGY"] == "AVG"
        assert info.properties["PROP_CLIENT_VERSION"] == "V5_5_0"
        assert info.properties["PROP_NAMESERVER_ADDR"] == f"{scene.broker.addr};"
        assert info.properties["PROP_RMQTOOLS_VERSION"] == rmqtools.__version__
        assert "PROP_RMQTOOLS_PIN_VERSION" not in info.properties
        assert [data.topic for data in info.subscription_set] == ["T"]
        assert set(info.status_table) == {"T"}
        assert "MainThread  TID:" in (info.jstack or "")
        assert "  task\n" in (info.jstack or "")
        assert "in ask\n" in (info.jstack or "")  # what the task of this test waits for


async def test_the_running_info_has_no_secrets():
    async with pushing(access_key="anna", secret_key="0123456789abcdef") as scene:
        answer = await ask_for_running_info(scene)

        assert b"0123456789abcdef" not in answer.body
        assert parse_running_info(answer.body).jstack is None


async def test_a_question_for_another_group_is_refused():
    async with pushing() as scene:
        answer = await ask_for_running_info(scene, group="h")

        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark == "this client is a member of group g, not of h"


@pytest.mark.parametrize(("group", "told"), [("g", {QUEUE: 12}), ("f", {}), ("h", {})])
async def test_offsets_in_memory_are_told_for_the_topic_and_the_group_asked(group, told):
    async with pushing() as scene:
        scene.member.offsets.update(QUEUE, 12)
        scene.member.offsets.update(MessageQueue("U", "broker-a", 0), 3)
        answer = await ask(scene, RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, topic="T", group=group)

        assert parse_consumer_status(answer.body).message_queue_table == told


async def test_a_message_consumed_directly_goes_to_its_listener_and_moves_no_offset():
    async with pushing() as scene:
        result = await consumed(scene, stored(8))

        assert (result.consume_result, result.order, result.remark) == ("CR_SUCCESS", False, None)
        assert scene.heard == [[8]]
        assert scene.committed is None


async def fails(messages, context) -> None:
    raise ValueError("no such customer")


async def reads(messages, context) -> None:
    _ = messages[0].body


async def answers_later(messages, context) -> ConsumeConcurrentlyStatus:
    return ConsumeConcurrentlyStatus.RECONSUME_LATER


@pytest.mark.parametrize(
    ("listener", "message", "result", "remark"),
    [
        pytest.param(answers_later, stored(8), "CR_LATER", "", id="later"),
        pytest.param(fails, stored(8), "CR_THROW_EXCEPTION", "ValueError: no such customer", id="error"),
        pytest.param(
            *(reads, corrupt(4), "CR_THROW_EXCEPTION"),
            "CorruptBodyError: body of the message at queue offset 4 .*",
            id="a-body-that-cannot-be-read",
        ),
    ],
)
async def test_what_the_listener_answers_is_told(listener, message, result, remark):
    async with pushing(listener) as scene:
        told = await consumed(scene, message)

        assert told.consume_result == result
        assert re.fullmatch(remark, told.remark or "")


async def test_a_dead_letter_goes_to_the_listener_of_its_first_topic():
    async with pushing() as scene:
        letter = stored(8, topic="%DLQ%g", RETRY_TOPIC="T")

        assert (await consumed(scene, letter)).consume_result == "CR_SUCCESS"


async def test_a_topic_without_a_listener_is_refused():
    async with pushing() as scene:
        answer = await consume(scene, stored(8, topic="U"))

        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark == "group g has no listener for topic U at this member"


async def test_after_a_reset_a_queue_goes_on_at_the_new_offset_and_it_is_stored():
    async with pushing() as scene:
        scene.member.offsets.update(QUEUE, 50)
        await reset(scene, 7)
        await until(lambda: scene.asked(RequestCode.UPDATE_CONSUMER_OFFSET))

        assert scene.held.is_dropped
        assert scene.member.held.pulled[QUEUE].next_offset == 7
        assert [asked["commitOffset"] for asked in scene.asked(RequestCode.UPDATE_CONSUMER_OFFSET)] == ["7"]


@pytest.mark.parametrize(
    ("offset", "asked", "logged"),
    [
        pytest.param(7, {"topic": "U"}, "", id="another-topic"),
        pytest.param(7, {"group": "h"}, "", id="another-group"),
        pytest.param(-1, {}, "offset_reset_ignored", id="a-negative-offset"),
    ],
)
async def test_a_reset_of_something_else_or_to_no_offset_moves_nothing(offset, asked, logged, caplog):
    async with pushing() as scene:
        await reset(scene, offset, **asked)

        assert scene.member.held.pulled[QUEUE] is scene.held
        assert not scene.held.is_dropped
    assert logged in caplog.text


async def test_what_was_being_consumed_during_a_reset_does_not_move_the_offset():
    gate = asyncio.Event()
    async with pushing(waits_for(gate)) as scene:
        scene.arrive(stored(50), stored(51))
        await idle()
        await reset(scene, 7)
        gate.set()
        await idle()

        assert scene.committed == 7


async def test_in_order_nothing_begins_after_a_reset_before_the_listener_has_ended():
    gate, heard = asyncio.Event(), list[int]()
    async with pushing(waits_for(gate, heard), orderly=True) as scene:
        scene.consumption.work_on(scene.held)
        scene.arrive(stored(50))
        await until(lambda: heard)
        await reset(scene, 7)
        fresh = scene.member.held.pulled[QUEUE]
        fresh.put([stored(7)])
        await idle()
        before = list(heard)
        gate.set()
        await until(lambda: fresh.count == 0)

        assert (before, heard) == ([50], [50, 7])
        assert fresh.is_locked
        assert scene.committed == 8
        fresh.drop()
