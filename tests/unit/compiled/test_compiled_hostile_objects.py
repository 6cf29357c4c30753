"""Objects that run code of their own in the middle of a compiled function, impossible numbers, and no memory.

Some of these cases break a wrong function only now and then; under ``make asan`` they always do.
"""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rmqtools.compiled import twins
from rmqtools.model import frozen
from rmqtools.model.message import Message
from rmqtools.model.message_const import RESERVED_PROPERTIES
from rmqtools.model.queue import MessageQueue
from rmqtools.policy import validate
from rmqtools.protocol.headers import codec
from rmqtools.protocol.headers.send import SendMessageResponseHeader
from rmqtools.protocol.messages import stored
from rmqtools.protocol.wire.framing import encode_frame
from tests.unit.compiled.twins import HEADER, STORED_BYTES, told

pytestmark = pytest.mark.skipif(
    os.environ.get("RMQTOOLS_PURE_PYTHON") == "1", reason="the twins were left out on purpose"
)

LARGEST = sys.maxsize
READ_ALL_LISTS = """
import gc
def read(phase, info):
    for one in gc.get_objects():
        if type(one) in (list, tuple):
            [*one]
gc.freeze()
gc.callbacks.append(read)
gc.set_threshold(1)
"""
CALLS = {
    "decode_plain": """
from rmqtools.protocol.messages import stored
from tests.unit.compiled.twins import STORED_BYTES
call = lambda: stored.decode_messages(STORED_BYTES * 50)""",
    "send_results": """
import rmqtools.engine.producer.send_answer
ids = [f"ID{number}" for number in range(50)]
call = lambda: twins.send_results(1, 2, 3, ids, ",".join(ids), None, None, None, True, ())""",
    "allowed_sizes": """
from rmqtools.model.message import Message
messages = [Message("t", b"x", properties={"a": "b"}) for _ in range(50)]
call = lambda: twins.allowed_sizes(messages, 100, 100, {"t"}, {"KEYS"}, 0)""",
    "id_texts": """
call = lambda: twins.id_texts("ID", 0, 5000)""",
    "call_as_python": """
from rmqtools.model.frozen import maker_of
from itertools import count
from rmqtools.model.queue import MessageQueue
make, numbers = maker_of(MessageQueue), count(200)
def call():
    held = [{} for _ in range(next(numbers))]  # so that none is kept for the next use
    try: make("t", broker_name="b")
    except TypeError: return True
call()  # the first call makes the class that it fills""",
}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.process
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collects between bytecodes only")
@pytest.mark.parametrize("call", CALLS)
def test_a_callback_of_the_garbage_collector_sees_no_list_that_is_half_filled(call):
    code = f"from rmqtools.compiled import twins\n{CALLS[call]}\n{READ_ALL_LISTS}"

    run(f"{code}\nfor _ in range(20): assert call() is not None\n")


@contextmanager
def at_each_collection(act: Callable[[], object]) -> Iterator[None]:
    def callback(_phase: str, _info: dict[str, int]) -> None:
        act()

    threshold = gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(1)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(callback)


def test_lists_that_lose_their_items_meanwhile_are_left_to_the_original():
    ids, starts = [bytes([65 + number]).decode() * 40 for number in range(9)], [0] * 9

    with at_each_collection(lambda: (ids.clear(), starts.clear())):
        found = [
            twins.send_results(1, 2, 3, ids, "," * 8, None, None, None, True, ()),
            twins.decode_plain(STORED_BYTES, starts, "b", stored._IPV4.fillers, False),
        ]

    assert all(each is None or len(each) in (0, 9) for each in found)


class Odd(str):
    """A text that runs code of its own when it is compared."""

    act: Callable[[], object]
    __slots__ = ("act",)
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        self.act()
        return str.__eq__(self, other)


def odd(text: str, act: Callable[[], object]) -> Odd:
    made = Odd(text)
    made.act = act
    return made


def fail() -> None:
    raise ValueError("cannot be compared")


@pytest.mark.parametrize(
    ("topics", "names"),
    [
        pytest.param({odd("known", fail)}, RESERVED_PROPERTIES, id="topics"),
        pytest.param({"known"}, {odd("p", fail)}, id="names"),
    ],
)
def test_a_text_that_cannot_be_compared_leaves_the_message_to_the_original(topics, names):
    message = Message("".join(("kno", "wn")), b"x", properties={"p": "v"})

    assert twins.allowed_size(message, 100, 1000, topics, names) is None
    assert twins.allowed_sizes([message], 100, 1000, topics, names, 0) is None


def unshared(text: str) -> str:
    return "".join([text[:1], text[1:]])


def sets_with(place: str, act: Callable[[], object]) -> tuple[set[str], set[str]]:
    """The known topics and the reserved names. One has an odd text, which changes its set too."""
    text = "known" if place == "topics" else "p"
    found: set[str] = set()

    def change() -> None:
        found.clear()
        found.update([text, *map(str, range(50))])
        act()

    found.add(odd(text, change))
    return (found, set()) if place == "topics" else ({"known"}, found)


def changing(**fields: Any) -> Message:
    """A message whose values have no other owner."""
    values = {"keys": [unshared("key")], "properties": {unshared("p"): unshared("v")}, **fields}
    return Message(unshared("known"), bytes(50), **values)


@pytest.mark.parametrize("place", ["topics", "names"])
@pytest.mark.parametrize(
    ("field", "value"), [("topic", None), ("properties", {}), ("keys", None), ("body", None)]
)
def test_a_message_that_changes_while_it_is_checked_does_no_harm(place, field, value):
    message = changing()
    sets = sets_with(place, lambda: object.__setattr__(message, field, value))

    size = twins.allowed_size(message, 100, 1000, *sets)

    assert size in (None, 50 + len("KEYS.key."), 50 + len("KEYS.key.p.v."))


@pytest.mark.parametrize("place", ["topics", "names"])
def test_a_list_of_messages_that_is_emptied_while_it_is_checked_does_no_harm(place):
    messages = [changing() for _ in range(3)]

    assert twins.allowed_sizes(messages, 100, 1000, *sets_with(place, messages.clear), 0) is None


def test_properties_that_are_emptied_while_they_are_checked_do_no_harm():
    properties = {unshared("p"): unshared("v"), unshared("q"): unshared("w")}
    message = Message("known", b"x", properties=properties)

    assert twins.allowed_size(message, 100, 1000, {"known"}, {odd("p", properties.clear)}) is None


@pytest.mark.process
def test_released_memory_is_not_used_by_these_tests():
    chosen = "lose_their_items or while_it_is_checked or while_they_are_checked"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--noconftest",
        __file__,
        "-k",
        chosen,
    ]
    environment = {**os.environ, "PYTHONMALLOC": "debug"}  # fills released memory, so its use is a crash

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_topics_that_were_valid_are_kept_as_plain_texts(monkeypatch):
    monkeypatch.setattr(validate, "_seen_topics", set())
    topic = odd("a_topic", fail)

    validate.check_message(Message(topic, b"x"), 100)

    assert [*map(type, validate._seen_topics)] == [str]
    assert validate.check_messages([Message(unshared("a_topic"), b"x")], 100).are_ordinary


def test_a_topic_that_is_compared_by_code_of_its_own_is_refused_for_its_text():
    class Hidden(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            return False

        def strip(self, *_: Any) -> str:
            return "fine"

    assert (
        told(validate.check_message, Message(Hidden("RMQ_SYS_TRANS_HALF_TOPIC"), b"x"), 100)[0] != "returned"
    )
    assert told(validate.check_message, Message(Hidden(""), b"x"), 100)[0] == "MessageRejectedError"


HALF_BOUND = f"""
from rmqtools.compiled import twins
data = bytes.fromhex({STORED_BYTES.hex()!r})

class Half:
    __slots__ = ("topic", "queue_offset", "body", "broker_name", "_fillers", "_head")

try:
    twins.bind_message_ext(Half)
except AttributeError:
    assert twins.decode_plain(data, [0], "b", {{}}, False) is None
from rmqtools.model.message import MessageExt
from rmqtools.protocol.messages import stored
for kind in (Half, MessageExt, type("Whole", (), {{"__slots__": (*Half.__slots__, "_properties")}})):
    try:
        assert not twins.bind_message_ext(kind)
    except AttributeError:
        pass
    (message,) = twins.decode_plain(data, [0], "b", stored._IPV4.fillers, False)
    assert type(message) is MessageExt and message.queue_id == 3
"""


@pytest.mark.process
def test_a_class_that_lacks_a_slot_is_not_bound_and_changes_nothing():
    run(HALF_BOUND)


@pytest.mark.parametrize(
    ("bind", "given"),
    [
        (twins.maker_of, (MessageQueue, ("topic", 5), MessageQueue)),
        (twins.maker_of, (MessageQueue, ("topic", "colour"), MessageQueue)),
        (twins.maker_of, ("no class", ("topic",), MessageQueue)),
        (twins.reader_of, (MessageQueue, ("no field",), 1, 2, 3)),
        (twins.reader_of, (MessageQueue, ((1, 2),), 1, 2, 3)),
        (twins.reader_of, (MessageQueue, ((1, 2, 3, 4, 5),), 1, 2, 3)),
        (twins.reader_of, (MessageQueue, (("colour", 2, 3, 4, 5),), 1, 2, 3)),
    ],
)
def test_classes_that_do_not_fit_are_refused(bind, given):
    assert told(bind, *given)[0] in ("TypeError", "AttributeError")


def test_the_init_of_a_message_takes_no_other_object():
    init = Message.__dict__["__init__"]

    assert told(init)[0] == "TypeError"
    assert told(init, object(), "t", b"x")[0] in ("TypeError", "AttributeError")
    assert told(init, MessageQueue("t", "b", 1), "t", b"x")[0] in ("TypeError", "AttributeError")


@pytest.mark.parametrize("first", [LARGEST, LARGEST - 1, -LARGEST - 1, -1, 0xFFFF])
def test_counters_of_ids_wrap_at_the_largest_number(first):
    ids = [f"ID{first + number & 0xFFFF:04X}" for number in range(3)]
    message = Message("t", b"x")

    assert twins.id_texts("ID", first, 3) == ids
    encoded = twins.encode_plain([message] * 3, "ID", first, "") or b""
    assert [text.encode() in encoded for text in ids] == [True] * 3


def test_numbers_that_do_not_fit_are_refused():
    limits = (100, 1000, {"t"}, RESERVED_PROPERTIES)

    assert twins.allowed_sizes([Message("t", b"x")], *limits, LARGEST) is None
    assert twins.id_texts("ID", 0, -1) is None
    for base, smallest in [(LARGEST, 91), (LARGEST - 50, 91), (0, 0), (0, 3), (0, -LARGEST - 1)]:
        assert told(twins.follow_sizes, STORED_BYTES, base, smallest)[0] == "OverflowError"


@pytest.mark.parametrize(
    "body", [b"", bytearray(), memoryview(b""), memoryview(b"abc")[3:], (memoryview(b"ab")[1:1])]
)
def test_a_request_with_an_empty_body_is_filled(body):
    assert (twins.fill_request((b"a", b"b"), (), None, 5, body) or b"")[8:] == b"a5b"


FRAME = encode_frame(0, HEADER, b"body")
FIELDS = codec.header_fields(SendMessageResponseHeader)
MAKE = frozen.maker_of(MessageQueue)
LARGE = Message("t", b"x", properties={"p": "v" * 3000})
WITHOUT_MEMORY: dict[str, Callable[[], object]] = {
    "decode_plain": lambda: twins.decode_plain(STORED_BYTES, [0], "b", stored._IPV4.fillers, False),
    "decode_properties": lambda: twins.decode_properties(b"other\x01value\x02another\x01text\x02"),
    "read_header": lambda: twins.read_header(HEADER, b""),
    "read_frame": lambda: twins.read_frame(FRAME, len(FRAME)),
    "send_results": lambda: twins.send_results(1, 2, 3, ["a", "b"], "x,y", None, None, None, True, ()),
    "make": lambda: MAKE("t", "b", 1),
    "make-as-python": lambda: told(MAKE, "t", broker_name="b"),
    "message": lambda: Message("t", b"x", tags="a"),
    "encode_plain": lambda: twins.encode_plain([LARGE] * 4, "ID", 0, ""),
    "property_text": lambda: twins.property_text(LARGE, ""),
    "allowed_sizes": lambda: twins.allowed_sizes([LARGE], 100, 9000, {"t"}, RESERVED_PROPERTIES, 0),
    "id_texts": lambda: twins.id_texts("ID", 0, 3),
    "fill_request": lambda: twins.fill_request((b"a" * 2000, b"b"), (), None, 5, b""),
    "reader_of": lambda: twins.reader_of(SendMessageResponseHeader, FIELDS, 1, 2, 3),
}


@pytest.mark.parametrize("name", WITHOUT_MEMORY)
def test_without_memory_a_call_raises_memory_error_or_leaves_the_rest_to_the_original(name):
    testing = pytest.importorskip("_testcapi", reason="this Python has no tests of its own")
    call, outcomes = WITHOUT_MEMORY[name], []
    assert call() is not None

    for allocation in range(40):
        testing.set_nomemory(allocation, allocation + 1)
        try:
            call()
        except MemoryError:
            outcomes.append(allocation)
        finally:
            testing.remove_mem_hooks()

    assert outcomes or name in ("property_text", "encode_plain", "allowed_sizes", "make", "message")
