"""A block's messages: decoded together, batches taken apart, what cannot be read named."""

import pytest

from rmqtools.errors import ProtocolError
from rmqtools.model.block import MessageBlock
from rmqtools.protocol.messages.found import Found
from rmqtools.protocol.messages.stored_block import decode_block_portions
from tests.unit.arrow.stored_messages import QUEUE, Stored, block_of, inner_batch


def the_portion(block: MessageBlock) -> Found:
    (found,) = decode_block_portions(block)
    return found


def test_messages_know_their_broker_and_keep_their_order():
    block = block_of([Stored(queue_offset=offset, body=b"%d" % offset) for offset in (3, 4, 9)])

    messages = the_portion(block).messages

    assert [(message.queue_offset, message.body) for message in messages] == [(3, b"3"), (4, b"4"), (9, b"9")]
    assert {message.broker_name for message in messages} == {QUEUE.broker_name}


def test_only_messages_at_the_starts_of_the_block_are_given():
    block = block_of([Stored(queue_offset=5)], before=b"something else")

    assert [message.queue_offset for message in the_portion(block).messages] == [5]


@pytest.mark.parametrize(
    "behind", [[], [Stored(queue_offset=10)], [Stored(queue_offset=12)]], ids=["last", "followed", "gap"]
)
def test_a_batch_is_taken_apart_wherever_it_stands(behind):
    block = block_of([Stored(queue_offset=6), inner_batch([b"a", b"b", b"c"]), *behind])

    messages = the_portion(block).messages

    assert [message.queue_offset for message in messages][:4] == [6, 7, 8, 9]
    assert [message.body for message in messages[1:4]] == [b"a", b"b", b"c"]
    assert len(messages) == 4 + len(behind)


def test_a_batch_of_one_message_leaves_no_gap_and_is_taken_out_all_the_same():
    block = block_of([inner_batch([b"real"], queue_offset=10), Stored(queue_offset=11, body=b"plain")])

    assert [message.body for message in the_portion(block).messages] == [b"real", b"plain"]


def test_a_message_that_cannot_be_read_is_named_with_its_place():
    block = block_of([Stored(queue_offset=7), Stored(queue_offset=8, magic=0x12345678)])

    with pytest.raises(ProtocolError, match=rf"queue offset 8 of .*{QUEUE.topic}.* cannot be decoded"):
        the_portion(block)
