"""Messages to requests, where the body is a view."""

import array
from typing import Any

from rmqtools import Message, ProducerConfig
from rmqtools.engine.producer.encode_send import Encoder
from rmqtools.protocol.messages.batch import decode_batch

WIDE: Any = memoryview(array.array("q", range(16)))


def encoder() -> Encoder:
    return Encoder(ProducerConfig(name_server="127.0.0.1:1"), lambda now: "0" * 32, lambda: 0)


def test_a_body_that_is_a_view_on_wide_items_is_sent_as_its_bytes():
    assert encoder().encode(Message("T", WIDE)).body == WIDE.tobytes()


def test_a_body_in_a_batch_that_is_a_view_on_wide_items_is_sent_as_its_bytes():
    outgoing = encoder().encode_batch([Message("T", WIDE), Message("T", b"next")])

    assert [message.body for message in decode_batch(bytes(outgoing.body))] == [WIDE.tobytes(), b"next"]
