"""A filled template is the request it was made of, with other numbers."""

import json

import pytest

from rmqtools.errors import ProtocolError
from rmqtools.protocol.wire.command import RemotingCommand, decode_command, encode_command
from rmqtools.protocol.wire.framing import FrameDecoder
from rmqtools.protocol.wire.template import RequestTemplate

FIELDS = {"topic": "t", "queueOffset": "0", "subscription": "*", "maxMsgNums": "32"}


def header_of(frame: bytes) -> dict[str, object]:
    (whole,) = FrameDecoder().feed(frame)
    header: dict[str, object] = json.loads(whole.header)
    return header


@pytest.mark.parametrize(
    ("fields", "text"), [({"tags": "\ud800", "n": "0"}, None), ({"n": "0", "i": ""}, "\ud800")]
)
def test_text_that_is_no_unicode_is_a_protocol_error_as_in_any_command(fields, text) -> None:
    command = RemotingCommand(11, fields)

    with pytest.raises(ProtocolError, match="request 11 holds text that is no Unicode"):
        RequestTemplate(command, ["n"], "i" if text else None).fill(1, text=text).encode(1)


@pytest.mark.parametrize("number", [0, 7, -1, 2**63 - 1])
def test_a_filled_template_says_what_the_command_with_these_numbers_says(number: int) -> None:
    filled = RequestTemplate(RemotingCommand(11, FIELDS), ["queueOffset", "maxMsgNums"]).fill(number, 8)
    command = RemotingCommand(11, {**FIELDS, "queueOffset": str(number), "maxMsgNums": "8"})

    assert filled.code == 11
    assert header_of(filled.encode(77)) == header_of(encode_command(command, opaque=77))


@pytest.mark.parametrize(
    "text",
    [
        "100%d %s %",
        '"quoted" \\ back',
        '"opaque":0,',
        "\ue000",
        "\ue000\ue000",
        "属性 \U0001f600",
        "\x01\x02",
    ],
)
def test_texts_that_could_be_taken_for_a_place_to_fill_stay_what_they_are(text: str) -> None:
    command = RemotingCommand(11, {"topic": text, "queueOffset": "0", text: "name"})

    frame = RequestTemplate(command, ["queueOffset"]).fill(5).encode(9)

    (whole,) = FrameDecoder().feed(frame)
    decoded = decode_command(whole)
    assert decoded.opaque == 9
    assert decoded.ext_fields == {"topic": text, text: "name", "queueOffset": "5"}
