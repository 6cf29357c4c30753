"""The twins of headers, frames and values against their originals, as in ``test_compiled``."""

import os
from dataclasses import MISSING
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.compiled import twins
from rmqtools.model import frozen
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.headers import codec
from rmqtools.protocol.headers.offset import GetMaxOffsetRequestHeader
from rmqtools.protocol.headers.pull import PullMessageResponseHeader
from rmqtools.protocol.headers.send import CheckTransactionStateRequestHeader, SendMessageResponseHeader
from rmqtools.protocol.wire import command, template
from rmqtools.protocol.wire.framing import Frame, FrameDecoder, encode_frame
from tests.unit.compiled.twins import HEADER, TEXTS, VALUES, originals, told

pytestmark = pytest.mark.skipif(
    os.environ.get("RMQTOOLS_PURE_PYTHON") == "1", reason="the twins were left out on purpose"
)


@pytest.mark.parametrize(
    "put",
    [
        b"",
        b"0",
        b"-",
        b'"',
        b"{",
        b"}",
        b":",
        b",",
        b"\\",
        b" ",
        b".",
        b"e1",
        b"x",
        b"\x80",
        b"\x1f",
        b"99999",
    ],
)
@pytest.mark.parametrize("cut", [0, 1])
def test_damaged_headers_are_read_as_by_the_original_or_not_at_all(put, cut):
    for place in range(len(HEADER)):
        header = HEADER[:place] + put + HEADER[place + cut :]
        found = twins.read_header(header, b"body")
        if found is not None:
            with originals(command):
                assert told(command.decode_command, Frame(0, header, b"body")) == ("returned", found)


@pytest.mark.parametrize("value", [0, 1, 4, 127, 128, 255])
def test_damaged_frames_are_read_as_by_the_originals_or_not_at_all(value):
    frame = encode_frame(0, HEADER, b"body")
    for place in range(len(frame)):
        for data in (
            frame[:place],
            frame[:place] + bytes([value]) + frame[place + 1 :],
            frame + frame[:place],
        ):
            found = twins.read_frame(data, len(data))
            if found is not None:
                with originals(command):
                    assert [command.decode_command(one) for one in FrameDecoder().feed(data)] == [found]
    whole = twins.read_header(HEADER, b"body")
    assert twins.read_frame(frame, len(frame)) == whole
    assert twins.read_frame(memoryview(bytearray(frame + b"rest")), len(frame)) == whole
    nonsense: Any
    for nonsense in [(frame, len(frame) + 1), (frame, -1), (frame, "x"), ("x", 1), (frame,), (frame, 2**80)]:
        assert twins.read_frame(*nonsense) is None


def test_a_frame_is_read_only_if_its_lengths_are_those_of_the_bytes_given():
    frame = encode_frame(0, HEADER, b"body")
    for extra in range(-12, 20):
        other = frame[:4] + (len(HEADER) + extra).to_bytes(4, "big") + frame[8:]
        assert (twins.read_frame(other, len(other)) is None) is (extra != 0)
    for count in range(len(frame)):
        assert twins.read_frame(memoryview(frame)[:count], len(frame)) is None


NUMBERS = st.sampled_from(
    [
        "",
        "0",
        "007",
        "-1",
        "+1",
        " 1",
        "1_0",
        "123456789",
        "2147483648",
        "\u0663",
        "9" * 18,
        "9" * 19,
        "1a",
        "\0",
    ]
)


@given(
    st.dictionaries(st.sampled_from(["queueId", "queueOffset"]), NUMBERS | st.none()),
    st.dictionaries(st.sampled_from(["msgId", "transactionId", "recallHandle", "batchUniqId", "x"]), VALUES),
    st.sampled_from(
        [SendMessageResponseHeader, PullMessageResponseHeader, CheckTransactionStateRequestHeader]
    ),
)
def test_fields_of_headers_are_read_as_by_the_original(numbers, texts, header_class):
    ext_fields = texts | numbers
    with originals(codec):
        original = told(codec.decode_header, header_class, ext_fields)

    assert told(codec.decode_header, header_class, ext_fields) == original


@pytest.mark.parametrize("number", ["2147483647", "2147483648", "9" * 9, "9" * 18, "9" * 19, "-1", "", "1 "])
@pytest.mark.parametrize("name", ["queueId", "queueOffset", "nsd", "msgType"])
def test_one_odd_field_is_read_as_by_the_original(name, number):
    for header_class, others in (
        (SendMessageResponseHeader, {"msgId": "7F00", "queueId": "3", "queueOffset": "12"}),
        (GetMaxOffsetRequestHeader, {"topic": "T", "queueId": "3", "nsd": "true"}),
    ):
        with originals(codec):
            original = told(codec.decode_header, header_class, others | {name: number})

        assert told(codec.decode_header, header_class, others | {name: number}) == original


def test_the_header_of_an_answer_is_read_by_the_twin():
    ext_fields = {"msgId": "7F00", "queueId": "3", "queueOffset": "12", "MSG_REGION": "r"}
    read = reader_of(codec.header_fields(SendMessageResponseHeader))

    assert read(ext_fields) == SendMessageResponseHeader(msg_id="7F00", queue_id=3, queue_offset=12)
    assert read({"msgId": "7F00", "queueId": "3"}) is None
    assert read(list(ext_fields)) is None


def reader_of(fields):
    """The twin that reads a broker's answer to a send, from these fields of its header."""
    parsers = codec._parse_int32, codec._parse_int64
    return twins.reader_of(SendMessageResponseHeader, fields, *parsers, MISSING)


def test_a_reader_wants_fields_that_are_slots_and_not_too_many():
    fields = codec.header_fields(SendMessageResponseHeader)

    with pytest.raises(TypeError, match="no slot fast"):
        reader_of((fields[0]._replace(name="fast"),))
    assert reader_of(fields[:1] * 17) is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("t", "b", 1), {}),
        (("t",), {"queue_id": 1, "broker_name": "b"}),
        ((), {"queue_id": 1, "broker_name": "b", "topic": "t"}),
        ((), {"".join(["queue", "_id"]): 1, "broker_name": "b", "topic": "t"}),
        (("t", "b"), {}),
        (("t", "b", 1, 2), {}),
        (("t", "b", 1), {"topic": "t"}),
        (("t", "b"), {"topic": "t"}),
        (("t", "b"), {"other": "t"}),
    ],
)
def test_values_are_made_as_by_the_original(given, named):
    with originals(frozen):
        original = frozen.maker_of(MessageQueue)

    assert told(frozen.maker_of(MessageQueue), *given, **named) == told(original, *given, **named)


def test_a_maker_wants_a_class_with_slots():
    with pytest.raises(TypeError, match="no slot topic"):
        twins.maker_of(type("Slotless", (), {"topic": 1}), ("topic",), print)
    assert twins.maker_of(MessageQueue, ("topic",) * 17, MessageQueue) is None


def test_an_ordinary_header_is_read():
    found = twins.read_header(HEADER, b"body")

    assert (found.code, found.opaque, found.remark, found.ext_fields["queueOffset"]) == (0, 5, "fine", "12")


@given(TEXTS | st.none(), st.integers(-(2**63), 2**64), st.binary(max_size=3))
def test_requests_are_filled_as_by_the_original(text, number, body):
    asked = command.RemotingCommand(10, {"a%d": 'x"%', "n": "0", "t": "0"})
    form = template.RequestTemplate(asked, ("n",), text=None if text is None else "t")
    filled = form.fill(number, text=text, body=body)
    with originals(template):
        original = told(filled.encode, 9)

    assert told(filled.encode, 9) == original
