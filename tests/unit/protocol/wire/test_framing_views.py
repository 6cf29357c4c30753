"""Bodies that are views on items wider than a byte: lengths are in bytes."""

import array
from typing import Any

import pytest

from rmqtools.engine.producer.encode_send import batch_bytes
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message
from rmqtools.policy.packing import pack
from rmqtools.policy.validate import check_message
from rmqtools.protocol.wire.framing import Frame, FrameDecoder, encode_frame

WIDE: Any = memoryview(array.array("q", range(16)))
BYTES = WIDE.tobytes()


def test_a_frame_of_a_wide_view_is_that_of_its_bytes():
    assert encode_frame(0, b"{}", WIDE) == encode_frame(0, b"{}", BYTES)


def test_a_decoder_fed_a_wide_view_reads_its_bytes():
    stream = encode_frame(0, b"{}", bytes(6))
    assert len(stream) % 8 == 0

    frames = FrameDecoder().feed(memoryview(stream).cast("q"))

    assert frames == [Frame(0, b"{}", bytes(6))]


def test_the_limit_of_a_body_is_in_bytes():
    with pytest.raises(MessageRejectedError, match="body has 128 bytes, more than max_message_bytes=100"):
        check_message(Message("T", WIDE), 100)


def test_batches_are_packed_by_bytes():
    message = Message("T", WIDE)

    sizes = batch_bytes([message, Message("T", BYTES)], ["", ""])

    assert sizes[0] == sizes[1]
    assert [list(numbers) for numbers in pack([message] * 2, sizes, 400)] == [[0], [1]]
