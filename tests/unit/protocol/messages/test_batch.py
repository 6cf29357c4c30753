import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.protocol.messages.batch import BatchMessage, decode_batch, encode_batch
from rmqtools.protocol.messages.properties import format_properties
from tests.unit.protocol.messages.stored_cases import INT_32, TEXTS

MESSAGES = st.lists(
    st.builds(BatchMessage, INT_32, st.binary(max_size=40), st.dictionaries(TEXTS, TEXTS, max_size=3)),
    max_size=4,
)


def encode(messages):
    return b"".join(
        encode_batch([(message.flag, message.body, format_properties(message.properties).encode())])
        for message in messages
    )


@given(MESSAGES)
def test_decoding_gives_what_was_encoded(messages):
    assert decode_batch(encode(messages)) == messages


@given(MESSAGES.filter(bool), st.data())
def test_a_batch_cut_inside_a_message_is_refused(messages, data):
    last = len(encode(messages[-1:]))
    encoded = encode(messages)

    with pytest.raises(ProtocolError):
        decode_batch(encoded[: -data.draw(st.integers(1, last - 1))])


@given(st.binary(max_size=200), MESSAGES, st.integers(0, 300), st.integers(0, 255))
def test_any_bytes_give_messages_or_a_protocol_error(data, messages, place, value):
    damaged = bytearray(encode(messages) or b"\0")
    damaged[place % len(damaged)] = value
    for body in (data, bytes(damaged)):
        with contextlib.suppress(ProtocolError):
            decode_batch(body)


@pytest.mark.parametrize("length", [0, 1, 3, -1, 0x7FFF])
def test_properties_that_do_not_end_with_the_message_are_refused(length):
    data = encode_batch([(0, b"b", b"pp")])

    with pytest.raises(ProtocolError, match=f"properties of {length}"):
        decode_batch(data[:-4] + length.to_bytes(2, signed=True) + b"pp")


def test_properties_too_long_for_their_length_are_refused():
    with pytest.raises(ValueError, match="32768"):
        encode_batch([(0, b"", bytes(32768))])
