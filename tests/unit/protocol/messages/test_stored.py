import contextlib
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.model.message import MessageExt
from rmqtools.protocol.messages.message_id import format_offset_msg_id
from rmqtools.protocol.messages.stored import (
    BLANK_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    SYSFLAG_POSITION,
    check_body,
    decode_message,
    decode_messages,
    encode_message,
    message_starts,
    queue_offset_at,
)
from rmqtools.testing import stored_message
from tests.unit.protocol.messages.stored_cases import VERSIONS, stored_messages

HOST = "10.0.0.1:10911"
MESSAGE = stored_message(
    "T",
    5,
    queue_id=1,
    commit_log_offset=99,
    body=b"hello",
    properties={"KEYS": "k", "UNIQ_KEY": "u"},
    born_host=HOST,
    store_host=HOST,
)
STORED = encode_message(MESSAGE)


def patched(form, position, value):
    data = bytearray(STORED)
    struct.pack_into(form, data, position, value)
    return bytes(data)


@given(stored_messages(), VERSIONS)
def test_decoding_gives_what_was_stored(message, version):
    decoded = decode_message(encode_message(message, version=version))

    made = {
        "sys_flag": message.sys_flag & ~1,
        "body_crc": decoded.body_crc,
        "store_size_bytes": decoded.store_size_bytes,
        "offset_msg_id": format_offset_msg_id(message.store_host, message.commit_log_offset),
    }
    assert decoded == replace(message, **made)


@given(st.lists(stored_messages(), max_size=5), VERSIONS)
def test_a_pull_body_is_cut_into_its_messages(messages, version):
    stored = [encode_message(message, version=version) for message in messages]
    data = b"".join(stored)

    starts = message_starts(data)

    assert starts == [sum(map(len, stored[:number])) for number in range(len(stored))]
    assert [queue_offset_at(data, start) for start in starts] == [
        message.queue_offset for message in messages
    ]
    assert decode_messages(memoryview(data)) == [decode_message(one) for one in stored]


@given(stored_messages(), VERSIONS, st.data())
def test_damaged_bytes_give_messages_or_a_protocol_error(message, version, data):
    damaged = bytearray(encode_message(message, version=version))
    for _ in range(data.draw(st.integers(0, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(damaged)))

    with contextlib.suppress(ProtocolError):
        assert isinstance(decode_message(bytes(damaged[:end])), MessageExt)
    with contextlib.suppress(ProtocolError):
        decode_messages(bytes(damaged[:end]) + bytes(damaged))


@pytest.mark.parametrize("end", range(len(STORED)))
def test_a_message_cut_off_is_refused(end):
    with pytest.raises(ProtocolError):
        decode_message(STORED[:end])
    if end:
        with pytest.raises(ProtocolError):
            message_starts(STORED + STORED[:end])


@pytest.mark.parametrize("size", [0, -1, 1, 90, len(STORED) + 1, 0x7FFF_FFFF])
def test_a_size_that_leads_nowhere_is_refused(size):
    with pytest.raises(ProtocolError, match=f"message of {size} bytes at 0"):
        message_starts(patched(">i", 0, size))


@pytest.mark.parametrize("size", [91, len(STORED) - 1])
def test_a_message_that_holds_more_than_it_says_is_refused(size):
    with pytest.raises(ProtocolError, match=f"says {size} bytes and holds {len(STORED)}"):
        decode_message(patched(">i", 0, size))


def test_bytes_behind_the_properties_are_passed_over():
    longer = patched(">i", 0, len(STORED) + 3) + b"new"

    assert [message.body for message in decode_messages(longer + STORED)] == [b"hello", b"hello"]


def test_the_smallest_message_has_neither_body_nor_topic_nor_properties():
    smallest = encode_message(replace(MESSAGE, body=b"", topic="", properties={}))

    assert message_starts(smallest) == [0]
    assert len(smallest) == 91


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(patched(">i", 4, BLANK_MAGIC_CODE), id="blank"),
        pytest.param(patched(">I", 52, 65536), id="port"),
        pytest.param(patched(">i", 84, 0x7FFF_FFFF), id="body-length"),
        pytest.param(patched(">b", 93, -1), id="topic-length"),
        pytest.param(patched(">i", SYSFLAG_POSITION, 0x401), id="compression-type"),
        pytest.param(patched(">i", SYSFLAG_POSITION, 0x101), id="no-lz4"),
    ],
)
def test_what_no_broker_stores_is_refused(data):
    with pytest.raises(ProtocolError):
        decode_message(data)


def test_a_negative_body_or_properties_length_is_none():
    no_body = struct.pack(">i", -5)
    data = struct.pack(">i", 92) + STORED[4:84] + no_body + b"\x01T" + struct.pack(">h", -1)

    decoded = decode_message(data)

    assert (decoded.body, decoded.topic, decoded.properties) == (b"", "T", {})


def test_a_body_may_stay_compressed():
    data = encode_message(replace(MESSAGE, sys_flag=0x301))

    decoded = decode_message(data, decompress_body=False)

    assert decoded.sys_flag == 0x301
    assert decoded.body[:1] == b"\x78"
    assert check_body(decoded, decoded.body)


def test_a_body_larger_than_the_limit_is_refused():
    data = encode_message(replace(MESSAGE, sys_flag=0x301, body=bytes(1000)))

    with pytest.raises(ProtocolError, match="larger than 999"):
        decode_messages(data, max_body_bytes=999)


def test_a_wrong_checksum_is_seen_when_asked_for():
    decoded = decode_message(patched(">i", 8, 77))

    assert not check_body(decoded, decoded.body)


def test_text_that_is_no_utf_8_does_not_stop_a_reader():
    data = STORED.replace(b"KEYS\x01k", b"KEYS\x01\xff")

    assert decode_message(data).properties["KEYS"] == "\ufffd"


def test_long_topics_need_the_second_version():
    long_topic = replace(MESSAGE, topic="t" * 128)

    assert decode_message(encode_message(long_topic, version=MESSAGE_MAGIC_CODE_V2)).topic == long_topic.topic
    with pytest.raises(ValueError, match="too long"):
        encode_message(long_topic)


def test_properties_too_long_to_store_are_refused():
    with pytest.raises(ValueError, match="too long"):
        encode_message(replace(MESSAGE, properties={"k": "v" * 32767}))
