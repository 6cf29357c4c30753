"""Each compiled twin against its Python original: equal for plain input, None or equal for any other."""

import ast
import gc
import os
import subprocess
import sys
import tracemalloc
from dataclasses import MISSING, field, fields, make_dataclass
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqtools.compiled import twins
from rmqtools.config import ProducerConfig
from rmqtools.engine.producer import encode_send, send_answer
from rmqtools.model import frozen
from rmqtools.model.encoded_batch import MsgIds
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.message_const import RESERVED_PROPERTIES
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendStatus
from rmqtools.policy import validate
from rmqtools.protocol.headers import codec
from rmqtools.protocol.headers.send import SendMessageResponseHeader
from rmqtools.protocol.messages import stored
from rmqtools.protocol.messages.properties import decode_properties, parse_properties
from rmqtools.protocol.wire import template
from rmqtools.protocol.wire.framing import encode_frame
from tests.support.patience import PROGRAM_PATIENCE
from tests.unit.compiled.twins import HEADER, STORED, STORED_BYTES, TEXTS, VALUES, originals, told

pytestmark = pytest.mark.skipif(
    os.environ.get("RMQTOOLS_PURE_PYTHON") == "1", reason="the twins were left out on purpose"
)

SECOND = stored.encode_message(STORED, version=stored.MESSAGE_MAGIC_CODE_V2)
SECOND_BYTES = len(SECOND)
DATA = STORED_BYTES + SECOND


def all_fields(messages: list[MessageExt]) -> list[tuple[object, ...]]:
    return [tuple(getattr(one, field.name) for field in fields(MessageExt)) for one in messages]


def test_the_types_of_the_compiled_module_are_written_for_each_function():
    written = ast.parse(Path(twins.__file__).with_name("_twins.pyi").read_text())
    names = {node.name for node in written.body if isinstance(node, ast.FunctionDef)}

    assert names == {name for name in dir(twins) if not name.startswith("_")}


def test_this_installation_has_the_twins():
    assert twins is not None, "rmqtools was built without its compiled module: see what make-venv printed"


def test_properties_are_those_of_the_original():
    pieces = (b"\x01", b"\x02", b"a", b"bc", b"\xc3", b"\xa9", b"\xf0\x9f", b"\x98\x80")
    every = (b"".join(some) for length in range(6) for some in product(pieces, repeat=length))

    wrong = [
        data for data in every if decode_properties(data) != parse_properties(data.decode("utf-8", "replace"))
    ]

    assert wrong == []


def test_names_of_properties_that_share_a_place_are_told_apart():
    names = [f"name{number}" for number in range(2000)]

    assert [*decode_properties("".join(f"{name}\x01v\x02" for name in names).encode())] == names


@pytest.mark.parametrize("value", [0, 1, 2, 16, 32, 48, 127, 128, 0xA7, 0xAB, 255])
@pytest.mark.parametrize("decompresses", [True, False])
def test_damaged_messages_are_decoded_as_by_the_original_or_not_at_all(value, decompresses):
    decoded = 0
    for place in range(len(DATA)):
        data = DATA[:place] + bytes([value]) + DATA[place + 1 :]
        for start in (0, len(DATA) - SECOND_BYTES, 5, len(DATA) - 3):
            found = twins.decode_plain(data, [start], "b", stored._IPV4.fillers, decompresses)
            if found is not None:
                original = stored._decode(data, [start], decompresses, 1 << 20, "b")
                assert told(all_fields, found) == told(all_fields, original)
                decoded += 1

    assert decoded > len(DATA)


@given(st.integers(0, len(DATA)))
def test_cut_off_messages_are_left_to_the_original(end):
    with originals(stored):
        original = told(stored.decode_messages, DATA[:end])

    assert told(stored.decode_messages, DATA[:end]) == original


@pytest.mark.parametrize("starts", [[-1], [2**70], [len(DATA)], ["0"]])
def test_starts_that_cannot_be_are_refused(starts):
    assert told(twins.decode_plain, DATA, starts, "b", {}, False) != ("returned", [])


MESSAGES: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    topic=st.sampled_from(["known", "known", "b\u00e4d", "", 5]),
    body=st.sampled_from([b"x", b"y" * 90, b"", "text", bytearray(b"z"), memoryview(b"zz")]),
    tags=VALUES,
    keys=st.lists(VALUES, max_size=3) | st.tuples(TEXTS) | VALUES,
    properties=st.dictionaries(TEXTS | st.just("KEYS"), TEXTS, max_size=2) | st.just({"a": 3}),
    flag=st.sampled_from([0, 1, -(2**31), 2**31, 2**80]),
    sharding_key=VALUES,
    delay_level=st.sampled_from([0, 0, 0, 3, 99]),
    priority=st.sampled_from([None, None, 1]),
)
PLAIN: dict[str, Any] = {
    "topic": "known",
    "body": b"x",
    "tags": "t",
    "keys": ["a", "b"],
    "properties": {"p": "\u00e9"},
}


def encoder_of(ids: MsgIds) -> encode_send.Encoder:
    """An encoder with these ids from the first on, one by one and in a row alike."""
    next_id = cycle(ids)
    config = ProducerConfig(name_server="h:1")
    return encode_send.Encoder(config, lambda _: next(next_id), lambda: 0, reserve_ids=lambda *_: ids)


@given(st.lists(MESSAGES, min_size=1, max_size=3))
@example([PLAIN | {"tags": None}, PLAIN | {"tags": ""}])
@example([PLAIN] * 3)
def test_messages_are_checked_measured_and_encoded_as_by_the_originals(all_values):
    validate.check_message(Message("known", b"x"), 100)
    messages = [Message(**values) for values in all_values]
    ids = MsgIds("ID", 0, len(messages))
    with originals(validate, encode_send):
        checked = told(validate.check_messages, messages, 80, encode_send.FRAMING_BYTES)
        if checked[0] == "returned":
            sizes = encode_send.measured(messages)[1]
            batch = encoder_of(ids).encode_batch(messages)
            single = encoder_of(ids).encode(messages[0])

    again = told(validate.check_messages, messages, 80, encode_send.FRAMING_BYTES)

    assert again[0] == checked[0]
    if checked[0] == "returned":
        assert not (again[1].are_ordinary and any(message.is_alone for message in messages))
        assert again[1].sizes in (None, sizes)
        assert encode_send.measured(messages)[1] == sizes
        assert encoder_of(ids).encode_batch(messages).body == batch.body
        assert encoder_of(ids).encode(messages[0]) == single
    else:
        assert again == checked


def test_plain_messages_are_checked_and_encoded_by_the_twins():
    message = Message(**PLAIN)
    limits = (100, 1000, {"known"}, RESERVED_PROPERTIES, 7)
    size = 7 + len(b"x") + len(encode_send.property_text(message).encode())

    assert twins.allowed_sizes([message] * 3, *limits) == [size] * 3
    assert twins.allowed_sizes([message, Message("known", b"")], *limits) is None
    assert twins.allowed_sizes([Message("known", b"x" * 101)], *limits) is None
    assert twins.allowed_sizes([Message("known", b"x", tags="a||b")], *limits) is None
    assert twins.allowed_sizes([Message("known", b"x", keys="a||b")], *limits) == [7 + 1 + len("KEYS.a||b.")]
    assert twins.allowed_sizes([Message("known", b"x", properties={"KEYS": "a"})], *limits) is None
    assert twins.allowed_sizes([message], *limits[:4], "x") is None  # type: ignore[arg-type]  # the mistake
    assert (twins.encode_plain([message] * 3, "ID", 0xFFFF, "end") or b"").count(b"ID0000end") == 1
    assert twins.encode_plain([Message("known", b"x", properties={"p": "v" * 0x8000})], "ID", 0, "") is None
    assert "KEYS\x01a b\x02" in (twins.property_text(message, "") or "")


@pytest.mark.parametrize("length", [1, 900, 1000, 1100, 4000, 4100, 9000, 30_000])
def test_long_messages_and_requests_are_encoded_as_by_the_originals(length):
    messages = [Message("known", b"x" * 700, properties={"p": "v" * length}) for _ in range(40)]
    encoder = encoder_of(MsgIds("ID", 0, 40))
    with originals(encode_send, template):
        batch = encoder.encode_batch(messages)
        single = encoder.encode(messages[0])
        text = encode_send.property_text(messages[0])
        frames = [one.request_to(MessageQueue("known", "b", 1), "b").encode(5) for one in (batch, single)]

    assert encoder.encode_batch(messages).body == batch.body
    assert twins.property_text(messages[0], "end") == f"{text}end"
    assert [one.request_to(MessageQueue("known", "b", 1), "b").encode(5) for one in (batch, single)] == frames


@pytest.mark.parametrize(
    ("positional", "named"),
    [
        (("t", b"x"), {}),
        (("t", b"x", "tag", "key", {"a": "b"}, 1, "s", 2, 3.0, 4, 5), {}),
        ((), {"body": b"x", "topic": "t", "priority": 3}),
        (("t",), {}),
        (("t", b"x"), {"topic": "again"}),
        (("t", b"x"), {"colour": "red"}),
        (("t", b"x", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), {}),
    ],
)
def test_a_message_is_made_as_by_its_dataclass(positional, named):
    def original() -> Message:
        made = Message.__new__(Message)
        python_init(made, *positional, **named)
        return made

    assert told(Message, *positional, **named) == told(original)


def python_init(made: Message, *positional: object, **named: object) -> None:
    """The dataclass's own ``__init__``, from a class that is defined in the same way."""

    kinds: list[Any] = [(one.name, one.type) for one in fields(Message)[:2]]
    kinds += [(one.name, one.type, _default(one)) for one in fields(Message)[2:]]
    twin = make_dataclass("Message", kinds)
    values = twin(*positional, **named)
    for one in fields(Message):
        object.__setattr__(made, one.name, getattr(values, one.name))


def _default(one: Any) -> Any:

    return (
        field(default=one.default)
        if one.default is not MISSING
        else field(default_factory=one.default_factory)
    )


def test_a_message_has_its_own_properties_by_default():
    assert Message("t", b"x").properties is not Message("t", b"x").properties


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 2**63 - 1))
@example(2, 2, 2**63 - 1)
@example(2, 2, 2**63 - 2)
@example(1, 1, 2**63 - 1)
@example(5, 5, 2**63 - 4)
def test_results_are_those_of_the_original(ids, places, offset):
    header = SendMessageResponseHeader(
        msg_id=",".join(["7F00"] * places),
        queue_id=1,
        queue_offset=offset,
        transaction_id=None,
        recall_handle="h",
    )
    placed = send_answer.Placed(
        SendStatus.SEND_OK, MessageQueue("t", "b", 1), header, MsgIds("ID", 0xFFFE, ids), "region", True
    )
    with originals(send_answer):
        original = told(placed.results, [])

    assert told(placed.results, []) == original


@pytest.mark.process  # it works for seconds
def test_twins_keep_nothing():
    message = Message(**PLAIN)
    make_queue = frozen.maker_of(MessageQueue)

    def work() -> None:
        for _ in range(200):
            all_fields(stored.decode_messages(DATA))
            twins.encode_plain([Message(**PLAIN), message], "ID", 0, "end")
            twins.read_header(HEADER, b"")
            twins.read_header(HEADER[:-9], b"")
            for header in (HEADER, HEADER[:-1]):
                frame = encode_frame(0, header, b"body")
                twins.read_frame(bytearray(frame), len(frame))
            for number in ("12", "x"):
                fields_ = {"msgId": "7F00", "queueId": number, "queueOffset": number}
                told(codec.decode_header, SendMessageResponseHeader, fields_)
            told(make_queue, "t", broker_name="b", queue_id=1)
            told(make_queue, "t")
            twins.send_results(1, 2, 3, ["a", "b"], "x,y", None, None, None, True, ())
            twins.send_results(1, 2, 3, ["a", "b"], "x", None, None, None, True, ())
            told(Message, "t")

    def grown() -> int:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    work()
    tracemalloc.start()
    try:
        work()
        least = min(grown() for _ in range(3))  # other threads of the process may have grown meanwhile
    finally:
        tracemalloc.stop()

    assert least < 20_000


@pytest.mark.process
@pytest.mark.parametrize(
    "rooms",
    [
        pytest.param(["protocol"], id="where-most-twins-are"),
        pytest.param(
            ["engine/producer", "policy", "model", "engine/consumer"], id="others", marks=pytest.mark.slow
        ),
    ],
)
def test_without_twins_the_same_tests_pass(rooms):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not slow and not broker and not process",
            *(f"tests/unit/{room}" for room in rooms),
        ],
        env={**os.environ, "RMQTOOLS_PURE_PYTHON": "1"},
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE,
    )

    assert done.returncode == 0, done.stdout[-3000:]
