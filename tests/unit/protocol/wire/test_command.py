import contextlib
import json
import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import LanguageCode, RequestCode, SerializeType
from rmqtools.protocol.headers.offset import GetMaxOffsetRequestHeader
from rmqtools.protocol.wire.command import (
    MAX_FIELDS,
    MAX_REMARK,
    RemotingCommand,
    decode_command,
    encode_command,
    request,
    response,
)
from rmqtools.protocol.wire.framing import Frame, FrameDecoder
from tests.contract.rocketmq_header import encode_rocketmq_command

INT_32 = st.integers(-(1 << 31), (1 << 31) - 1)
TEXTS = st.text(min_size=1, max_size=20)
COMMANDS = st.builds(
    RemotingCommand,
    code=st.integers(-0x8000, 0x7FFF),
    ext_fields=st.dictionaries(TEXTS, TEXTS, max_size=5),
    body=st.binary(max_size=50),
    opaque=INT_32,
    flag=INT_32,
    remark=st.none() | TEXTS,
    language=st.sampled_from(LanguageCode),
    version=st.integers(0, 0x7FFF),
    serialize_type=st.sampled_from(SerializeType),
)


def decode_bytes(data):
    (frame,) = FrameDecoder().feed(data)
    return decode_command(frame)


def encoded(command):
    if command.serialize_type == SerializeType.ROCKETMQ:
        return encode_rocketmq_command(command)
    return encode_command(command)


def json_frame(**fields):
    return Frame(SerializeType.JSON, json.dumps({"code": 0, **fields}).encode(), b"body")


def rocketmq_frame(*, remark=b"", remark_length=None, fields=b""):
    length = len(remark) if remark_length is None else remark_length
    head = struct.pack(">hbhiii", 0, 0, 0, 1, 1, length) + remark
    return Frame(SerializeType.ROCKETMQ, head + struct.pack(">i", len(fields)) + fields, b"")


@given(COMMANDS)
def test_decoding_gives_what_was_encoded(command):
    assert decode_bytes(encoded(command)) == command


@given(st.integers(0, 2), st.binary(max_size=100), st.binary(max_size=10))
@example(0, b"[" * 100_000, b"")
@example(0, b'{"code":' + b"9" * 5000 + b"}", b"")
@example(0, b'{"code":1,"extFields":[1]}', b"")
@example(0, b'{"code":1,"language":[1]}', b"")
@example(0, b'{"code":1,"extFields":{"a":1e999}}', b"")
@example(0, b'[{"code":1}]', b"")
@example(0, b"\xff\xfe", b"")
@example(1, bytes(21), b"")
def test_any_header_bytes_give_a_command_or_a_protocol_error(serializer, header, body):
    with contextlib.suppress(ProtocolError):
        assert decode_command(Frame(serializer, header, body)).body == body


@given(COMMANDS, st.data())
def test_a_header_cut_short_never_decodes(command, data):
    command.serialize_type = data.draw(st.sampled_from(SerializeType))
    (frame,) = FrameDecoder().feed(encoded(command))
    end = data.draw(st.integers(0, len(frame.header) - 1))

    with pytest.raises(ProtocolError):
        decode_command(frame._replace(header=frame.header[:end]))


def test_whatever_form_a_command_was_read_in_it_goes_out_as_json():
    command = RemotingCommand(RequestCode.POP_MESSAGE, serialize_type=SerializeType.ROCKETMQ)

    decoded = decode_bytes(encode_command(command))

    assert (decoded.code, decoded.serialize_type) == (200050, SerializeType.JSON)


@pytest.mark.parametrize("form", SerializeType)
def test_null_values_are_left_out(form):
    command = RemotingCommand(1, {"a": None, "b": "1"}, serialize_type=form)

    assert decode_bytes(encoded(command)).ext_fields == {"b": "1"}


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(ProtocolError, match="Unicode"):
        encode_command(RemotingCommand(1, {"a": "\ud800"}))


UNKNOWN_VALUES: dict[str, tuple[str, Any, list[Any]]] = {
    "code": ("code", 9999, [9999]),
    "language": ("language", None, ["COBOL", "", "java", None, 3, 2.5, True, ["JAVA"], {"name": "JAVA"}]),
    "version": ("version", 0, [None, "V5_9_9", 2**31, -(2**40), 1.5, True, [], {}]),
    "form": ("serializeTypeCurrentRPC", SerializeType.JSON, ["ROCKETMQ", "XML", None, 5, []]),
    "fields": ("extFields", {}, [{}, None, [], "", 0, False]),
    "flag": ("flag", 0, [None]),
    "opaque": ("opaque", 0, [None]),
}
ATTRIBUTES = {"serializeTypeCurrentRPC": "serialize_type", "extFields": "ext_fields"}


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        pytest.param(name, value, read, id=f"{about}-{value!r}")
        for about, (name, read, values) in UNKNOWN_VALUES.items()
        for value in values
    ],
)
def test_a_value_of_a_header_that_this_version_does_not_know_fails_no_frame(name, value, read):
    decoded = decode_command(json_frame(**{name: value}))

    assert (getattr(decoded, ATTRIBUTES.get(name, name)), decoded.body) == (read, b"body")


def test_fields_that_are_no_text_become_their_text():
    decoded = decode_command(json_frame(extFields={"i": 3, "t": True, "n": None, "o": {"a": [1]}}))

    assert decoded.ext_fields == {"i": "3", "t": "true", "n": None, "o": '{"a":[1]}'}


def test_an_unknown_serialize_type_is_named():
    with pytest.raises(ProtocolError, match="serialize type 2"):
        decode_command(Frame(2, b"", b""))


@pytest.mark.parametrize("length", [-1, 5, 0x7FFF_FFFF])
def test_a_rocketmq_remark_length_that_leads_nowhere_is_refused(length):
    with pytest.raises(ProtocolError):
        decode_command(rocketmq_frame(remark=b"hi", remark_length=length))


@pytest.mark.parametrize(
    "frame",
    [rocketmq_frame(remark=b"x" * 100_000), json_frame(remark="x" * 100_000)],
    ids=["binary", "json"],
)
def test_a_long_remark_is_cut_because_it_goes_into_errors(frame):
    assert decode_command(frame).remark == "x" * MAX_REMARK + "... (100000 characters)"


def test_a_remark_of_usual_length_is_kept():
    answer = encode_command(response(1, 0, remark="x" * MAX_REMARK))

    assert decode_bytes(answer).remark == "x" * MAX_REMARK


@pytest.mark.parametrize(
    "frame",
    [
        rocketmq_frame(fields=struct.pack(">hi", 0, 0) * (MAX_FIELDS + 1)),
        json_frame(extFields={f"{n}": "" for n in range(1 << 16)}),
    ],
    ids=["binary", "json"],
)
def test_a_header_with_thousands_of_fields_is_refused(frame):
    with pytest.raises(ProtocolError, match=r"more than (4096 fields|65536 values)"):
        decode_command(frame)


def test_a_request_carries_its_header_and_who_asks():
    command = request(GetMaxOffsetRequestHeader(topic="T", queue_id=3), opaque=7)

    assert command.code == RequestCode.GET_MAX_OFFSET
    assert command.ext_fields == {"topic": "T", "queueId": "3", "committed": "true"}
    assert (command.opaque, command.language, command.version) == (7, LanguageCode.PYTHON, 513)
    assert not command.is_response
