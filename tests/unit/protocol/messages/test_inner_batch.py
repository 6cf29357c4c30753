"""Batches that a broker keeps as one message."""

from dataclasses import replace

import pytest

from rmqtools.errors import ProtocolError
from rmqtools.model.message import MessageExt
from rmqtools.protocol.messages.batch import encode_batch
from rmqtools.protocol.messages.inner_batch import message_count, unwrap
from rmqtools.protocol.messages.stored import encode_message
from rmqtools.testing import stored_message

BATCH = 0xC0


def stored(*, sys_flag: int = BATCH, properties: dict[str, str] | None = None) -> MessageExt:
    body = b"".join(encode_batch([(number, b"%d" % number, b"a\x01b\x02")]) for number in range(3))
    given = {"INNER_NUM": "3"} if properties is None else properties
    return stored_message("T", 40, body=body, properties=given, sys_flag=sys_flag)


@pytest.mark.parametrize(
    ("sys_flag", "count"),
    [
        pytest.param(BATCH, 3, id="batch"),
        pytest.param(0x80, 1, id="not-to-be-unwrapped"),
        pytest.param(0, 1, id="plain"),
    ],
)
def test_a_batch_takes_as_many_offsets_as_it_says(sys_flag, count):
    assert message_count(encode_message(stored(sys_flag=sys_flag)), 0) == count


@pytest.mark.parametrize("number", ["", "many", "-1"])
def test_a_batch_that_does_not_say_how_many_it_holds_is_refused(number):
    with pytest.raises(ProtocolError, match="batch at queue offset 40 of topic 'T': INNER_NUM is"):
        message_count(encode_message(stored(properties={"INNER_NUM": number} if number else {})), 0)


def test_messages_of_a_batch_have_offsets_in_a_row_and_what_is_their_own():
    messages = unwrap(stored())

    assert [message.queue_offset for message in messages] == [40, 41, 42]
    assert [message.body for message in messages] == [b"0", b"1", b"2"]
    assert [message.flag for message in messages] == [0, 1, 2]
    assert {message.store_host for message in messages} == {"127.0.0.1:2"}
    assert messages[0].properties == {"a": "b"}


def test_a_plain_message_is_itself():
    message = stored(sys_flag=0)

    assert unwrap(message) == [message]


def test_a_body_that_is_no_batch_is_refused():
    with pytest.raises(ProtocolError, match="batch of 2 bytes is cut off"):
        unwrap(replace(stored(), body=b"ab"))
