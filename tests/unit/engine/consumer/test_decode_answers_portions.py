"""Answers whose bodies grow, and answers with more than was asked for."""

import zlib
from dataclasses import replace

import pytest

from rmqtools.engine.consumer.decode_answers import AnswerDecoder
from rmqtools.errors import ProtocolError
from rmqtools.model.result import PullResult, PullStatus
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.policy.subscription import build_subscription
from rmqtools.protocol.messages.found import PORTION_BYTES
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing.fake.messages import encode_with_body
from tests.unit.engine.consumer.push_scene import QUEUE, stored
from tests.unit.engine.consumer.test_decode_answers_popped import popped

ALL = build_subscription("T", "*")


def answer(count: int, size: int) -> bytes:
    body = zlib.compress(bytes(size))
    one = replace(stored(0), body=body, sys_flag=COMPRESSED_FLAG)
    return b"".join(encode_with_body(replace(one, queue_offset=offset)) for offset in range(count))


def pull_of(body: bytes, count: int) -> PullResult:
    return PullResult(PullStatus.FOUND, count, 0, count, 0, body)


def pop_of(body: bytes, count: int) -> RemotingCommand:
    return popped(body, offsets=",".join(map(str, range(count))))


def test_a_pull_goes_on_in_its_answer_where_the_portion_before_has_ended():
    decoder = AnswerDecoder(lambda _: 1, max_messages=32, max_body_bytes=PORTION_BYTES)
    result = pull_of(answer(5, PORTION_BYTES // 2), 5)

    first = decoder.pulled(QUEUE, result, begin=0, subscription=ALL)
    second = decoder.pulled(QUEUE, result, begin=first.next_offset, subscription=ALL, skip=first.rest or 0)
    last = decoder.pulled(QUEUE, result, begin=second.next_offset, subscription=ALL, skip=second.rest or 0)

    assert [(len(found.messages), found.next_offset, found.rest) for found in (first, second, last)] == [
        (2, 2, 2),
        (2, 4, 4),
        (1, 5, None),
    ]


def test_a_pop_comes_in_portions_each_message_with_its_check_point():
    decoder = AnswerDecoder(lambda _: 1, max_messages=32, max_body_bytes=PORTION_BYTES)

    portions = list(decoder.popped(QUEUE, pop_of(answer(5, PORTION_BYTES // 2), 5), topic="T").portions)

    assert [(len(portion.messages), portion.has_more) for portion in portions] == [
        (2, True),
        (2, True),
        (1, False),
    ]
    offsets = [m.properties["POP_CK"].split(" ")[-1] for portion in portions for m in portion.messages]
    assert offsets == ["0", "1", "2", "3", "4"]


def test_more_messages_than_were_asked_for_are_refused():
    decoder = AnswerDecoder(lambda _: 1, max_messages=4, max_body_bytes=PORTION_BYTES)
    body = answer(5, 10)

    with pytest.raises(ProtocolError, match="has 5 messages: 4 were asked for"):
        decoder.pulled(QUEUE, pull_of(body, 5), begin=0, subscription=ALL)
    with pytest.raises(ProtocolError, match="has 5 messages: 4 were asked for"):
        decoder.popped(QUEUE, pop_of(body, 5), topic="T")
