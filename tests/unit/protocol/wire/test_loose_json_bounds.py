"""Bodies that would take much memory, a deep stack or much time are refused before they are parsed."""

import pytest

from rmqtools.errors import ProtocolError
from rmqtools.protocol.wire.bodies import parse_reset_offset, parse_topic_route
from rmqtools.protocol.wire.loose_json import MAX_CONTAINERS, MAX_DEPTH, MAX_VALUES, parse_json


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


def test_an_object_without_others_in_a_loose_body_is_read_as_it_stands():
    text = b'{{"b":"x","q":0}:{"max":9,"t":"a]b"},{"q":1}:{0:{"a":[1,2,{}]}},"k":["}",{"x":"{"}]}'

    assert parse_json(text) == {
        '{"b":"x","q":0}': {"max": 9, "t": "a]b"},
        '{"q":1}': {"0": {"a": [1, 2, {}]}},
        "k": ["}", {"x": "{"}],
    }


@pytest.mark.parametrize("parse", [parse_topic_route, parse_reset_offset])
def test_routes_and_requests_above_4_mib_are_refused(parse):
    with pytest.raises(ProtocolError, match="at most 4194304 are read"):
        parse(b"{" + b" " * (4 << 20) + b"}")
