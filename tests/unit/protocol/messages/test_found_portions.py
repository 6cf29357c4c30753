"""Bodies that grow: decoded portion by portion, and refused above the reader's limit."""

import pickle
from dataclasses import replace

import pytest

from rmqtools.errors import BodyTooLargeError, CorruptBodyError, ProtocolError
from rmqtools.protocol.messages.batch import MAX_MESSAGES, decode_batch, encode_batch
from rmqtools.protocol.messages.compression import CompressionType
from rmqtools.protocol.messages.found import PORTION_BYTES, PORTION_MESSAGES, decode_found
from rmqtools.protocol.messages.stored_block import decode_block_portions
from tests.unit.arrow.stored_messages import COMPRESSED, QUEUE, Stored, block_of, inner_batch

KINDS = [COMPRESSED | kind.sys_flag for kind in CompressionType]


def growing(count: int, size: int, sys_flag: int = COMPRESSED) -> list[Stored]:
    return [Stored(queue_offset=n, body=bytes(size), sys_flag=sys_flag) for n in range(count)]


@pytest.mark.parametrize("sys_flag", KINDS, ids=hex)
def test_a_portion_ends_with_the_body_that_reaches_its_size(sys_flag):
    block = block_of(growing(5, PORTION_BYTES // 2, sys_flag))

    portions = list(decode_block_portions(block))

    assert [[message.queue_offset for message in found.messages] for found in portions] == [
        [0, 1],
        [2, 3],
        [4],
    ]
    assert [found.decoded for found in portions] == [2, 2, 1]


def test_messages_that_are_not_compressed_are_one_portion():
    block = block_of([Stored(queue_offset=n, body=bytes(PORTION_BYTES)) for n in range(3)])

    assert [found.decoded for found in decode_block_portions(block)] == [3]


@pytest.mark.process
def test_stored_batches_with_many_messages_come_in_portions():
    block = block_of([inner_batch([b"x"] * PORTION_MESSAGES, queue_offset=n * 10_000) for n in range(2)])

    assert [len(found.messages) for found in decode_block_portions(block)] == [PORTION_MESSAGES] * 2


@pytest.mark.process  # it works for seconds
def test_a_batch_with_more_messages_than_any_producer_can_send_is_refused():
    with pytest.raises(ProtocolError, match="more than 65536 messages"):
        decode_batch(encode_batch([(0, b"", b"")]) * (MAX_MESSAGES + 1))


@pytest.mark.parametrize("sys_flag", KINDS, ids=hex)
def test_a_body_above_the_limit_is_told_with_the_setting_and_leaves_its_neighbours_alone(sys_flag):
    stored = [Stored(queue_offset=1), *growing(1, 1001, sys_flag), Stored(queue_offset=3)]
    block = block_of(stored)

    found = decode_found(block.buffer, block.starts, QUEUE, max_body_bytes=1000)

    assert [message.queue_offset for message in found.messages] == [1, 0, 3]
    error = found.messages[1].body_error
    assert isinstance(error, BodyTooLargeError)
    assert isinstance(error, CorruptBodyError)
    assert error.max_bytes == 1000
    assert "larger than max_decompressed_bytes=1000 when decompressed" in str(error)


def test_a_body_of_just_the_limit_is_read():
    block = replace(block_of(growing(1, 1000)), max_decompressed_bytes=1000)

    (found,) = decode_block_portions(block)

    assert found.messages[0].body == bytes(1000)


def test_reading_a_block_fails_with_the_limit_of_its_client():
    block = replace(block_of(growing(1, 1001)), max_decompressed_bytes=1000)

    with pytest.raises(BodyTooLargeError, match=r"queue offset 0 of .*Orders.* raise max_decompressed_bytes"):
        list(decode_block_portions(block))


def test_such_an_error_survives_pickling_and_other_values_of_its_message():
    block = block_of(growing(1, 1001))
    message = decode_found(block.buffer, block.starts, QUEUE, max_body_bytes=1000).messages[0]

    for other in (pickle.loads(pickle.dumps(message)), message.with_topic("other")):
        assert isinstance(other.body_error, BodyTooLargeError)
    error = pickle.loads(pickle.dumps(message.body_error))
    assert (str(error), error.max_bytes) == (str(message.body_error), 1000)
