"""The body that acknowledges many popped messages."""

import json
from base64 import b64decode

import pytest

from rmqtools.errors import ProtocolError
from rmqtools.protocol.headers.pop_extra_info import split_extra_info
from rmqtools.protocol.messages.batch_ack import batch_ack_body, parse_batch_ack_body

HEAD = "100 1700000000000 60000 3 0 broker-a 2"


def popped(*offsets: int, head: str = HEAD) -> list[tuple[str, tuple[str, int] | None]]:
    return [("T", (head, offset)) for offset in offsets]


def test_the_messages_of_a_check_point_are_bits_from_its_offset_on():
    body, left_out = batch_ack_body("g", popped(100, 101, 109))
    assert body is not None
    told = json.loads(body)
    (ack,) = told["acks"]
    bits = ack.pop("b")

    assert (told["brokerName"], left_out) == ("broker-a", [])
    assert ack == {
        "c": "g",
        "t": "T",
        "r": "0",
        "so": 100,
        "q": 2,
        "rq": 3,
        "pt": 1_700_000_000_000,
        "it": 60_000,
    }
    assert b64decode(bits) == bytes([0b11, 0b10])  # BitSet.toByteArray


def test_each_check_point_and_topic_has_an_entry_of_its_own():
    retry = HEAD.replace(" 3 0 ", " 3 1 ")
    body, _ = batch_ack_body("g", [*popped(100, 102), *popped(105, head=retry), ("U", (HEAD, 100))])
    assert body is not None

    found = {(ack.stored_in, tuple(ack.offsets)) for ack in parse_batch_ack_body(body)}
    assert found == {("T", (100, 102)), ("%RETRY%g_T", (105,)), ("U", (100,))}


@pytest.mark.parametrize("text", [HEAD, f"{HEAD} 99", f"{HEAD} 4196", f"{HEAD} 100 7"])
def test_a_message_that_is_no_bit_of_its_check_point_is_left_out(text):
    parts = split_extra_info(text)
    body, left_out = batch_ack_body("g", [("T", parts), *popped(100)])

    assert (left_out, body is None) == ([0], False)
    assert batch_ack_body("g", [("T", parts)]) == (None, [0])


@pytest.mark.parametrize("text", [f"{HEAD} x", "a b c d e f g 1"])
def test_a_text_that_is_no_extra_info_is_refused(text):
    with pytest.raises(ProtocolError, match="extra info"):
        batch_ack_body("g", [("T", split_extra_info(text))])


def test_a_body_that_cannot_be_read_is_refused():
    with pytest.raises(ProtocolError, match="BATCH_ACK_MESSAGE"):
        parse_batch_ack_body(b'{"acks": [{}]}')
