"""Copies of stored messages, as parts of a batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.protocol.messages.batch import decode_batch, without_first
from rmqtools.protocol.messages.copied import encode_copied, stored_parts
from rmqtools.protocol.messages.properties import format_properties
from rmqtools.protocol.messages.stored import decode_message
from rmqtools.testing import encode_stored, stored_message
from tests.unit.protocol.messages.stored_cases import stored_messages

texts = st.text(
    st.characters(blacklist_characters="\x01\x02", blacklist_categories=["Cs"]), min_size=1, max_size=20
)


@given(
    st.lists(
        st.tuples(
            st.binary(min_size=1, max_size=100), st.dictionaries(texts, texts, max_size=4), st.integers(0, 99)
        ),
        min_size=1,
        max_size=5,
    )
)
def test_body_flag_and_properties_of_stored_messages_are_those_of_the_batch(contents):
    stored = [
        encode_stored([stored_message("t", body=body, properties=properties, flag=flag)])
        for body, properties, flag in contents
    ]
    parts = [stored_parts(data, 0) for data in stored]
    pieces = [piece for each in parts for piece in encode_copied(each, b"\x02".join(each.properties))]
    batch = b"".join(pieces)

    assert [(one.body, one.properties, one.flag) for one in decode_batch(batch)] == contents
    assert [one.body for one in decode_batch(bytes(without_first(batch, 1)))] == [
        body for body, *_ in contents[1:]
    ]


@given(stored_messages())
def test_parts_are_those_of_the_decoded_message_whatever_its_form(message):
    data = encode_stored([message])
    parts, decoded = stored_parts(data, 0), decode_message(data, 0, decompress_body=False)

    assert parts.queue_offset == decoded.queue_offset
    assert parts.store_timestamp_ms == decoded.store_timestamp_ms
    assert (parts.sys_flag, parts.flag) == (decoded.sys_flag, decoded.flag)
    assert parts.body == decoded.body
    assert b"\x02".join(parts.properties).decode() == format_properties(decoded.properties)


@given(st.integers(min_value=0, max_value=200))
def test_a_message_that_is_cut_off_is_an_error(length):
    data = encode_stored([stored_message("t", body=b"x" * 40, properties={"a": "b"})])

    with pytest.raises(ProtocolError):
        stored_parts(data[: min(length, len(data) - 1)], 0)


def test_properties_that_no_message_can_have_are_an_error():
    parts = stored_parts(encode_stored([stored_message("t", body=b"x")]), 0)

    with pytest.raises(ProtocolError, match="32768 bytes of properties"):
        encode_copied(parts, format_properties({"a": "b" * 32765}).encode())
