"""The length of a body is in bytes, for memoryviews of any item size."""

import array
from typing import Any

import pytest

from rmqtools.engine.producer.encode_send import batch_bytes
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message, body_length
from rmqtools.policy.validate import check_message
from rmqtools.protocol.messages.batch import decode_batch, encode_batch
from rmqtools.protocol.messages.compression import CompressionType, compress, decompress

WIDE: Any = memoryview(array.array("I", range(100)))  # 100 items, 400 bytes


def test_a_length_is_in_bytes():
    assert (body_length(b"abc"), body_length(bytearray(3)), body_length(WIDE)) == (3, 3, 400)


def test_a_body_of_wide_items_is_too_long_by_its_bytes():
    with pytest.raises(MessageRejectedError, match="body has 400 bytes"):
        check_message(Message("T", WIDE), 399)
    check_message(Message("T", WIDE), 400)


def test_a_batch_makes_room_for_all_bytes():
    messages = [Message("T", WIDE), Message("T", bytes(400))]

    assert len(set(batch_bytes(messages, ["", ""]))) == 1


def test_a_message_of_a_batch_is_read_back_whole():
    encoded = encode_batch([(0, WIDE, b"")])

    assert [message.body for message in decode_batch(encoded)] == [WIDE.tobytes()]


@pytest.mark.parametrize("kind", CompressionType)
def test_a_compressed_body_in_wide_items_is_decompressed(kind):
    packed = compress(kind, bytes(range(256)) * 40_000)
    packed += bytes(-len(packed) % 4)

    assert len(decompress(kind, memoryview(packed).cast("I"))) == 256 * 40_000
