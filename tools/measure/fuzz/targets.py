"""Targets of the fuzz: a decoder, and valid bytes. Decoders may raise our errors and no others."""

import contextlib
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from rmqtools.arrow import decode_block
from rmqtools.compiled import twins
from rmqtools.errors import ProtocolError, RocketMQError
from rmqtools.model.block import MessageBlock
from rmqtools.model.message import Message
from rmqtools.model.message_const import RESERVED_PROPERTIES
from rmqtools.protocol.headers import pop_extra_info
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.messages.batch import decode_batch
from rmqtools.protocol.messages.found import decode_portions
from rmqtools.protocol.messages.message_id import parse_offset_msg_id
from rmqtools.protocol.messages.properties import decode_properties, parse_properties
from rmqtools.protocol.messages.recall_handle import parse_recall_handle
from rmqtools.protocol.messages.stored import message_starts, whole_starts
from rmqtools.protocol.wire import bodies
from rmqtools.protocol.wire.command import RemotingCommand, decode_command
from rmqtools.protocol.wire.framing import FrameDecoder
from rmqtools.protocol.wire.loose_json import parse_json
from tests.support.headers import HEADERS
from tests.unit.arrow.stored_messages import QUEUE, inner_batch
from tests.unit.arrow.test_decode import UNUSUAL, one_by_one, outcome

VECTORS = Path(__file__).resolve().parents[3] / "tests" / "vectors"


@dataclass(frozen=True)
class Target:
    """A decoder with good input; ``decode`` raises AssertionError where its result is wrong."""

    decode: Callable[[bytes], object]
    seeds: Sequence[bytes]


def _vectors(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())
    return found


@cache
def _captured() -> tuple[bytes, ...]:
    """Return requests and answers of a real broker, and commands of the Java client: whole frames."""
    frames = [case[side] for case in _vectors("server_capture") for side in ("request", "response")]
    frames += [case["frame"] for case in _vectors("command")]
    return tuple(bytes.fromhex(frame) for frame in frames if frame)


def _commands(data: bytes) -> list[RemotingCommand]:
    decoder = FrameDecoder(max_frame_bytes=1 << 20)
    half = len(data) // 2
    frames = [*decoder.feed(data[:half]), *([] if decoder.error else decoder.feed(data[half:]))]
    return [decode_command(frame) for frame in frames]


def _bodies(data: bytes) -> None:
    for name, parse in inspect.getmembers(bodies, inspect.isfunction):
        if name.startswith("parse_") and parse.__module__ == bodies.__name__:
            _ours(parse, data)


def _headers(data: bytes) -> None:
    texts = data.decode(errors="replace").split("\n")
    fields = dict(zip(texts[::2], texts[1::2], strict=False))
    for each in HEADERS.values():
        _ours(partial(decode_header, each), fields)


def _header_seeds() -> list[bytes]:
    frames = [bytes.fromhex(case["jsonFrame"]) for case in _vectors("header")]
    fields = [command.ext_fields for frame in frames for command in _commands(frame)]
    return ["\n".join(f"{name}\n{value}" for name, value in each.items()).encode() for each in fields if each]


def _texts(data: bytes) -> None:
    text = data.decode(errors="replace")
    for parse in (
        parse_properties,
        parse_recall_handle,
        parse_offset_msg_id,
        pop_extra_info.parse_extra_info,
        pop_extra_info.parse_offset_info,
        pop_extra_info.parse_msg_offset_info,
    ):
        _ours(parse, text)


def _ours(parse: Callable[[Any], object], given: object) -> None:
    with contextlib.suppress(RocketMQError):
        parse(given)


def _messages(data: bytes) -> None:
    for portion in decode_portions(data, message_starts(data), QUEUE, max_body_bytes=1 << 20):
        for message in portion.messages:
            assert repr(message)
            assert message == message.with_topic(message.topic)
            _ours(lambda found: found.body, message)


def _compiled(data: bytes) -> None:
    """Call the compiled functions themselves, with bytes that no Python code has checked before."""
    text = data.decode(errors="replace")
    assert decode_properties(data) == parse_properties(text)
    if twins is None:
        return
    twins.decode_plain(data, [*whole_starts(data), 1], "b", {}, False)
    twins.read_header(data, b"")
    twins.read_frame(data, len(data))
    twins.fill_request((data, data, data), (len(data),), text, 1, data)
    message = Message("t", data, text[:9], text.split(" "), parse_properties(text), sharding_key=text[9:])
    twins.allowed_sizes([message], 1 << 20, 1 << 15, {"t"}, RESERVED_PROPERTIES, 0)
    twins.encode_plain([message] * 3, text.replace("\0", ""), len(data), "")
    twins.property_text(message, text)
    twins.send_results(1, 2, len(data), text.split("2"), text, None, None, None, True, ())


def _arrow(data: bytes) -> None:
    """Compare decoding by columns with decoding one by one."""
    block = MessageBlock(QUEUE, data, whole_starts(data), 1 << 40)
    ours = outcome(decode_block, block)
    assert ours is ProtocolError or ours.validate(full=True) is None
    assert ours == outcome(one_by_one, block)


_STORED = [message.encode() for message in UNUSUAL.values()] + [inner_batch([b"a", b"", b"c"]).encode()]
_BLOCKS = [first + second for first, second in zip(_STORED, _STORED[1:] + _STORED[:1], strict=True)]

TARGETS: dict[str, Target] = {
    "frames": Target(_commands, _captured()),
    "bodies": Target(
        _bodies,
        [case["json"].encode() for case in _vectors("json_body")] + [frame[80:] for frame in _captured()],
    ),
    "json": Target(parse_json, [case["json"].encode() for case in _vectors("json_body")]),
    "headers": Target(_headers, _header_seeds()),
    "texts": Target(
        _texts,
        [
            b"KEYS\x01k1 k2\x02TAGS\x01t\x02",
            b"0 1700000000000 60000 0 0 broker-a 3 17",
            b"0 3 17;1 4 18",
            b"0 3 17,18,19;1 4 20",
            b"7F0000010000271200000000000004D2",
            b"djEgVCBicm9rZXItYSAxNzAwMDAwMDAwMDAwIDdGMDE=",
        ],
    ),
    "batches": Target(decode_batch, [bytes.fromhex(case["bytes"]) for case in _vectors("message_batch")]),
    "messages": Target(_messages, _BLOCKS),
    "compiled": Target(_compiled, [*_BLOCKS, *_captured(), b"KEYS\x01k1 k2\x02TAGS\x01t\x02"]),
    "arrow": Target(_arrow, _BLOCKS),
}
