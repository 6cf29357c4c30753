"""Answers with broken messages and stored batches: the queue continues, listeners get good messages."""

import struct
from dataclasses import replace
from typing import Any

import pytest

from rmqtools.engine.consumer.running_info import running_info
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.protocol.messages.batch import encode_batch
from rmqtools.protocol.messages.inner_batch import INNER_BATCH
from rmqtools.protocol.messages.stored import decode_message, encode_message
from rmqtools.protocol.wire.command import RemotingCommand
from tests.support.batch_topics import keeping_batches
from tests.unit.engine.consumer.pull_script import answered, asked_offsets, pulls, script
from tests.unit.engine.consumer.push_scene import QUEUE, Scene, idle, pushing, stored, until

SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK


def good(offset: int) -> bytes:
    return encode_message(stored(offset))


def changed(offset: int, at: int, value: int) -> bytes:
    whole = bytearray(good(offset))
    struct.pack_into(">I", whole, at, value)
    return bytes(whole)


def corrupt(offset: int) -> bytes:
    """It says that it is compressed, and is not."""
    return changed(offset, 36, COMPRESSED_FLAG)


def headless(offset: int) -> bytes:
    """Its magic number is none."""
    return changed(offset, 4, 0x12345678)


def batch(first: int, count: int) -> bytes:
    """A batch that is stored as one message; its messages have the tags even and odd by turns."""
    tags = ("even", "odd")
    inner = [
        encode_batch([(0, b"%d" % offset, f"TAGS\x01{tags[offset % 2]}\x02".encode())])
        for offset in range(first, first + count)
    ]
    properties = {"INNER_NUM": str(count)}
    whole = replace(stored(first), body=b"".join(inner), sys_flag=INNER_BATCH, properties=properties)
    return encode_message(whole)


def pulled(*messages: bytes, next_offset: int) -> RemotingCommand:
    return answered(ResponseCode.SUCCESS, next_offset, body=b"".join(messages))


class Reader:
    """A listener that reads every body, and records its messages."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []
        self.bodies: list[bytes] = []

    async def __call__(self, messages, context) -> None:
        self.given.append([message.queue_offset for message in messages])
        self.bodies += [message.body for message in messages]


def sent_back(scene: Scene) -> list[tuple[int, int]]:
    """Of the messages sent back, the commit log offset and the delay level."""
    return [(int(fields["offset"]), int(fields["delayLevel"])) for fields in scene.asked(SEND_BACK)]


async def consumed(answer: RemotingCommand, *, committed: int, **settings: Any) -> tuple[Scene, Reader]:
    """The scene and its listener when so much of an answer to a pull is consumed."""
    async with pushing(listener := Reader(), answer=script(answer), **settings) as scene:
        scene.consumption.work_on(scene.held)
        await pulls(scene, 2)
        await until(lambda: scene.committed == committed)
    return scene, listener


ONE_IS_CORRUPT = pulled(good(0), corrupt(1), good(2), next_offset=3)


async def test_a_corrupt_message_is_sent_back_its_neighbours_are_consumed_and_the_queue_goes_on():
    scene, listener = await consumed(ONE_IS_CORRUPT, committed=3)

    assert asked_offsets(scene) == [0, 3]
    assert sorted(listener.bodies) == [b"0", b"2"]
    assert sent_back(scene) == [(100, 0)]


async def test_a_listener_of_batches_gets_a_corrupt_message_alone():
    answer = pulled(good(0), good(1), corrupt(2), good(3), good(4), next_offset=5)

    scene, listener = await consumed(answer, committed=5, consume_message_batch_max_size=10)

    assert sorted(listener.given) == [[0, 1], [2], [3, 4]]
    assert sent_back(scene) == [(200, 0)]


@pytest.mark.parametrize("size", [1, 10])
async def test_in_order_a_corrupt_message_is_a_dead_letter_after_its_first_failure(size):
    settings = {"orderly": True, "consume_message_batch_max_size": size}

    scene, listener = await consumed(ONE_IS_CORRUPT, committed=3, **settings)

    assert listener.given == [[0], [1], [2]]
    assert sent_back(scene) == [(100, -1)]


@pytest.mark.parametrize("orderly", [False, True])
async def test_broadcasting_a_corrupt_message_is_logged_and_passed(orderly, tmp_path, caplog):
    settings: Any = {"message_model": "BROADCASTING", "offset_store_path": str(tmp_path / "offsets.json")}

    scene, listener = await consumed(ONE_IS_CORRUPT, committed=3, orderly=orderly, **settings)

    assert listener.bodies == [b"0", b"2"]
    assert sent_back(scene) == []
    assert "dropped_after_failure" in caplog.text


async def test_a_message_whose_head_is_broken_is_passed_over_alone_counted_and_logged(caplog):
    answer = pulled(good(0), headless(1), good(2), headless(3), next_offset=4)

    scene, listener = await consumed(answer, committed=3)

    assert (asked_offsets(scene), listener.given) == ([0, 4], [[0], [2]])
    assert running_info(scene.member).properties["PROP_RMQTOOLS_PASSED_OVER"] == "2"
    assert scene.member.rates.status("T", scene.clock.monotonic()).consume_failed_msgs == 2
    assert f"queue offset 1 of {QUEUE} cannot be decoded" in caplog.text


async def test_messages_in_front_of_an_impossible_size_are_heard_and_the_log_says_where_they_end(caplog):
    answer = script(pulled(good(0), good(1), changed(2, 0, 0), good(3), next_offset=4))
    async with pushing(answer=answer) as scene:
        await pulls(scene, 1)
        await until(lambda: scene.committed == 2)
        await until(lambda: "pull_failed" in caplog.text)
        assert (scene.heard, scene.held.next_offset) == ([[0], [1]], 2)
    assert f"answer to a pull of {QUEUE} at 0: pull body of" in caplog.text
    assert "no message can be found from 2 on" in caplog.text


async def test_tags_choose_among_the_messages_of_a_stored_batch_and_the_broker_is_asked_for_all():
    answer = keeping_batches(script(pulled(batch(0, 5), next_offset=5)))
    async with pushing(answer=answer) as scene:
        scene.member.subscriptions.want("T", tags="odd")
        await pulls(scene, 2)
        await idle()
        assert scene.heard == [[1], [3]]
        assert {fields["subscription"] for fields in scene.asked(RequestCode.PULL_MESSAGE)} == {"*"}
        assert [data.sub_string for data in scene.member.data.subscription_data_set] == ["odd"]


async def test_a_stored_batch_that_cannot_be_taken_apart_is_wanted_whatever_the_tags():
    whole = replace(decode_message(batch(0, 5)), body=b"no batch")
    answer = keeping_batches(script(pulled(encode_message(whole), next_offset=5)))
    async with pushing(answer=answer) as scene:
        scene.member.subscriptions.want("T", tags="odd")
        await pulls(scene, 2)
        await idle()
        assert scene.heard == [[0]]


async def test_a_condition_on_stored_batches_is_refused_and_nothing_is_pulled(caplog):
    answer = keeping_batches(script(pulled(batch(0, 5), next_offset=5)))
    async with pushing(answer=answer) as scene:
        scene.member.subscriptions.want("T", sql="a > 1")
        scene.puller.start(scene.held)
        await until(lambda: "pull_failed" in caplog.text)
        assert asked_offsets(scene) == []
    assert "'T' has the queue type BatchCQ" in caplog.text


async def test_a_pull_inside_a_stored_batch_hands_out_only_what_was_asked_for():
    async with pushing(answer=script(pulled(batch(0, 5), next_offset=5))) as scene:
        scene.held.next_offset = 3
        await pulls(scene, 2)
        await until(lambda: scene.committed == 5)
        assert (asked_offsets(scene), scene.heard) == ([3, 5], [[3], [4]])
