"""What an answer holds: good messages, corrupt ones, and errors about broken heads."""

import pickle
import struct
from dataclasses import replace
from typing import Any

import pytest

from rmqtools.errors import BodyTooLargeError, CorruptBodyError, ProtocolError
from rmqtools.model.block import MessageBlock
from rmqtools.protocol.messages.batch import MAX_MESSAGES, decode_batch, encode_batch
from rmqtools.protocol.messages.compression import CompressionType
from rmqtools.protocol.messages.found import PORTION_BYTES, PORTION_MESSAGES, Found, decode_found
from rmqtools.protocol.messages.stored import whole_starts
from rmqtools.protocol.messages.stored_block import decode_block_portions
from tests.unit.arrow.stored_messages import (
    COMPRESSED,
    INNER_BATCH,
    QUEUE,
    Stored,
    block_of,
    inner_batch,
    properties_of,
)


class Damaged(Stored):
    """A message of offset 8 with four other bytes somewhere in it."""

    damage: tuple[int, int]

    def __init__(self, at: int, value: int, **fields: Any) -> None:
        super().__init__(queue_offset=8, **fields)
        object.__setattr__(self, "damage", (at, value))

    def encode(self) -> bytes:
        whole = bytearray(super().encode())
        struct.pack_into(">I", whole, *self.damage)
        return bytes(whole)


def found_in(block: MessageBlock) -> Found:
    return decode_found(block.buffer, block.starts, block.queue)


def around(stored: Stored) -> MessageBlock:
    """It stands between two good ones."""
    return block_of([Stored(queue_offset=7, body=b"before"), stored, Stored(queue_offset=30, body=b"behind")])


@pytest.mark.parametrize("kind", [0x000, 0x100, 0x200, 0x300, 0x400, 0x700], ids=hex)
def test_a_body_that_does_not_decompress_leaves_its_neighbours_alone(kind):
    found = found_in(around(Damaged(36, COMPRESSED | kind)))

    before, broken, behind = found.messages
    assert (before.body, behind.body) == (b"before", b"behind")
    assert broken.queue_offset == 8
    assert broken.body_error is not None
    assert broken.body_error.raw == b"body"
    assert not found.errors
    assert not found.is_whole


@pytest.mark.parametrize(
    ("at", "value"),
    [
        pytest.param(4, 0x12345678, id="magic"),
        pytest.param(84, 0x00FF_FFFF, id="body-length"),
        pytest.param(52, 0x0001_0000, id="port-of-a-host"),
    ],
)
def test_a_broken_head_leaves_out_that_message_alone_and_is_named(at, value):
    found = found_in(around(Damaged(at, value)))

    assert [message.queue_offset for message in found.messages] == [7, 30]
    (error,) = found.errors
    assert f"message at queue offset 8 of {QUEUE} cannot be decoded" in str(error)


def test_a_batch_that_cannot_be_taken_apart_is_one_corrupt_message():
    broken = Stored(body=b"\x00\x00", sys_flag=INNER_BATCH, queue_offset=8)

    found = found_in(around(broken))

    assert [message.queue_offset for message in found.messages] == [7, 8, 30]
    with pytest.raises(CorruptBodyError, match="batch of 2 bytes is cut off"):
        _ = found.messages[1].body


def test_batches_beside_a_corrupt_message_are_taken_apart():
    stored = [Damaged(36, COMPRESSED), inner_batch([b"a", b"b"], queue_offset=9)]

    found = found_in(block_of(stored))

    assert [message.queue_offset for message in found.messages] == [8, 9, 10]
    assert [message.body for message in found.messages[1:]] == [b"a", b"b"]


def test_batches_stay_whole_where_they_are_not_to_be_taken_apart():
    block = around(inner_batch([b"a", b"b"], queue_offset=8))

    found = decode_found(block.buffer, block.starts, block.queue, unwraps=False)

    assert [message.queue_offset for message in found.messages] == [7, 8, 30]


def test_properties_that_are_not_text_are_read_as_java_reads_them_and_the_body_is_good():
    text = properties_of(TAGS="red") + b"name\x01\xff\xfe\x02"

    (message,) = found_in(block_of([Stored(properties=text)])).messages

    assert (message.body, message.body_error, message.tags) == (b"body", None, "red")
    assert message.properties["name"] == "\ufffd\ufffd"


def test_a_checksum_that_is_wrong_is_not_looked_at_as_by_default_in_java():
    found = found_in(around(Damaged(8, 0x0BAD_0BAD)))

    assert [message.body_error for message in found.messages] == [None, None, None]


def test_good_messages_are_decoded_together_and_make_a_whole():
    assert found_in(around(Stored(queue_offset=8))).is_whole


@pytest.mark.parametrize("size", [0, -5, 5_000], ids=["none", "negative", "beyond-the-end"])
def test_starts_end_in_front_of_an_impossible_size(size):
    first, broken = Stored().encode(), bytearray(Stored().encode())
    struct.pack_into(">i", broken, 0, size)

    assert whole_starts(first + bytes(broken) + first) == [0]
    assert whole_starts(first + bytes(broken), base=100) == [100]


# Bodies that grow: decoded portion by portion, and refused above the reader's limit

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
