"""Headers and remarks that are too large."""

import json
import struct

import pytest

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import SerializeType
from rmqtools.protocol.wire.command import MAX_FIELDS, MAX_REMARK, decode_command, encode_command, response
from rmqtools.protocol.wire.framing import Frame, FrameDecoder


def rocketmq_header(*, remark: bytes = b"", fields: bytes = b"") -> Frame:
    head = struct.pack(">hbhii", 0, 0, 0, 1, 1) + struct.pack(">i", len(remark)) + remark
    return Frame(SerializeType.ROCKETMQ, head + struct.pack(">i", len(fields)) + fields, b"")


def json_header(**fields: object) -> Frame:
    return Frame(SerializeType.JSON, json.dumps({"code": 0, "flag": 1, **fields}).encode(), b"")


@pytest.mark.parametrize(
    "frame",
    [rocketmq_header(remark=b"x" * 100_000), json_header(remark="x" * 100_000)],
    ids=["binary", "json"],
)
def test_a_long_remark_is_cut_because_it_goes_into_errors(frame):
    remark = decode_command(frame).remark

    assert remark == "x" * MAX_REMARK + "... (100000 characters)"


def test_a_remark_of_usual_length_is_kept():
    (frame,) = FrameDecoder().feed(encode_command(response(1, 0, remark="x" * MAX_REMARK)))

    assert decode_command(frame).remark == "x" * MAX_REMARK


@pytest.mark.parametrize(
    "frame",
    [
        rocketmq_header(fields=struct.pack(">hi", 0, 0) * (MAX_FIELDS + 1)),
        json_header(extFields={f"{n}": "" for n in range(1 << 16)}),
    ],
    ids=["binary", "json"],
)
def test_a_header_with_thousands_of_fields_is_refused(frame):
    with pytest.raises(ProtocolError, match=r"more than (4096 fields|65536 values)"):
        decode_command(frame)
