import contextlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.protocol.wire.bodies import parse_reset_offset, parse_topic_route
from rmqtools.protocol.wire.loose_json import MAX_CONTAINERS, MAX_DEPTH, MAX_VALUES, parse_json

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), 1 << 63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
KEYS = st.text(max_size=10) | st.integers(-(1 << 31), 1 << 31)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
LOOSE_BYTES = st.lists(
    st.sampled_from(
        [*'{}[]:,"\\ ', "0", "-1", "1.5e3", "true", "null", '"a"', "{0:1}", "\u4e3b", "\ud83d\ude00", "'"]
    )
).map(lambda parts: "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())


def write_loosely(value):
    """As fastjson2 writes: keys that are no text stand bare."""
    if isinstance(value, dict):
        pairs = (f"{write_loosely(key)} :{write_loosely(item)}" for key, item in value.items())
        return "{ " + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + " , ".join(map(write_loosely, value)) + " ]\n"
    return json.dumps(value, ensure_ascii=False)


def with_text_keys(value):
    if isinstance(value, dict):
        return {str(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_bare_number_keys_read_as_their_text(value):
    assert parse_json(write_loosely(value).encode()) == with_text_keys(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{0:"a",1:"b"}', {"0": "a", "1": "b"}),
        ('{{"b":"x","q":0}:{"max":9}}', {'{"b":"x","q":0}': {"max": 9}}),
        ('{{"b":"x:}"}:1,{"b":"y"}:2}', {'{"b":"x:}"}': 1, '{"b":"y"}': 2}),
        ("[{0:{}},{1:[]}]", [{"0": {}}, {"1": []}]),
        ('{0:"\\u4e3b\\"\\\\","k":-1.5e3}', {"0": '主"\\', "k": -1500.0}),
        ("{null:1,true:2}", {"null": 1, "true": 2}),
        (" {0 : 1 } ", {"0": 1}),
        (
            '{{"b":"x","q":0}:{"max":9,"t":"a]b"},{"q":1}:{0:{"a":[1,2,{}]}},"k":["}",{"x":"{"}]}',
            {
                '{"b":"x","q":0}': {"max": 9, "t": "a]b"},
                '{"q":1}': {"0": {"a": [1, 2, {}]}},
                "k": ["}", {"x": "{"}],
            },
        ),
    ],
)
def test_what_servers_write_is_read(text, value):
    assert parse_json(text.encode()) == value


@pytest.mark.parametrize(
    "data",
    [
        *b" |{|{0|{0:|{0:1|{0:1,|{0:1,}x|{0:1}}|{0:1}{|{:1}|{0,1}|[1 2]".split(b"|"),
        *b"{0:01x}|{0:}|}|{0:1.2.3}|{0:--1}|{0:Infinity}|{0:1:1:1}".split(b"|"),
        b"",
        b'{0:"a}',
        b"{0:'a'}",
        b"\xff{0:1}",
        b"[" * 100_000,
        b"{0:" * 100_000,
        b"{0:" + b"9" * 5000 + b"}",
    ],
    ids=lambda data: repr(data[:12]),
)
def test_what_nobody_writes_is_refused(data):
    with pytest.raises(ProtocolError):
        parse_json(data)


@given(st.binary(max_size=100) | LOOSE_BYTES)
@example(b"{" * 2000)
@example(b'{{"a":1}:2,{"a":1}:3}')
def test_any_bytes_give_a_value_or_a_protocol_error(data):
    with contextlib.suppress(ProtocolError):
        parse_json(data)


def test_a_long_text_that_never_ends_takes_no_time():
    with pytest.raises(ProtocolError):
        parse_json(b'{0:"' + b'\\"a' * 1_000_000)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b"{0:", b'{"\\"[":'], ids=repr)
def test_nesting_deeper_than_64_is_refused_whatever_the_form(opening):
    closing = b"]" if opening == b"[" else b"}"
    nest = [opening * depth + b"1" + closing * depth for depth in (MAX_DEPTH, MAX_DEPTH + 1)]

    parse_json(nest[0])
    with pytest.raises(ProtocolError, match="nested deeper than 64"):
        parse_json(nest[1])


def test_brackets_in_texts_are_no_nesting():
    assert parse_json(b'["' + b"[{" * 100 + b'"]') == ["[{" * 100]


@pytest.mark.parametrize(
    ("one", "count"), [(b"[]", MAX_CONTAINERS), (b"{0:1}", MAX_CONTAINERS), (b"12", MAX_VALUES + 1)], ids=repr
)
def test_more_values_than_the_limit_are_refused(one, count):
    with pytest.raises(ProtocolError, match="values: at most 262144 and 786432 are read"):
        parse_json(b"[" + b",".join([one] * count) + b"]")


@pytest.mark.parametrize("parse", [parse_topic_route, parse_reset_offset])
def test_routes_and_requests_above_4_mib_are_refused(parse):
    with pytest.raises(ProtocolError, match="at most 4194304 are read"):
        parse(b"{" + b" " * (4 << 20) + b"}")
