"""A block's messages: decoded together, batches taken apart, what cannot be read named."""

import pytest

from rmqtools.model.block import MessageBlock
from rmqtools.protocol.messages.found import Found
from rmqtools.protocol.messages.stored_block import decode_block_portions
from tests.unit.arrow.stored_messages import Stored, block_of, inner_batch


def the_portion(block: MessageBlock) -> Found:
    (found,) = decode_block_portions(block)
    return found


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
