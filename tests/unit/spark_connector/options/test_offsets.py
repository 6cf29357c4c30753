"""Offsets as text and as numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools import MessageQueue
from spark_connector.options.offsets import (
    Times,
    parse_offset_spec,
    parse_offsets,
    parse_time,
    parse_times,
)
from spark_connector.options.queue_json import default_of, format_numbers, is_named
from spark_connector.options.time_zone import parse_zone

A0, A1, B0 = (
    MessageQueue("T", "broker-a", 0),
    MessageQueue("T", "broker-a", 1),
    MessageQueue("T", "broker-b", 0),
)
# "*" stands for all; no topic or broker has that name.
names = st.text(min_size=1).filter(lambda name: name != "*")
queues = st.builds(MessageQueue, names, names, st.integers(0, 2**31 - 1))


@pytest.mark.parametrize("text", ["group", " Group ", "GROUP"])
def test_words_are_read_in_any_case(text):
    assert parse_offset_spec(text) == "group"


def test_offsets_are_written_sorted():
    assert format_numbers({B0: 9, A1: 0, A0: 20}) == '{"T":{"broker-a":{"0":20,"1":0},"broker-b":{"0":9}}}'


@given(st.dictionaries(queues, st.integers(-2, 2**63 - 1), min_size=1))
def test_what_is_written_reads_back_equal(offsets):
    assert parse_offsets(format_numbers(offsets)) == offsets


def test_times_are_for_all_queues_or_for_each():
    assert Times(5).at(A0) == 5
    assert parse_times('{"T":{"broker-a":{"1":100000000000}}}').in_zone(None).at(A1) == 10**11


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        pytest.param("1795296714754", 1795296714754, id="milliseconds"),
        pytest.param("0", 0, id="zero"),
        pytest.param(str(10**11), 10**11, id="the-fewest-milliseconds"),
        pytest.param(str(2**63 - 1), 2**63 - 1, id="the-most-milliseconds"),
        pytest.param("1970-01-01T00:00:01Z", 1000, id="utc"),
        pytest.param("1970-01-01T02:00:00.5+02:00", 500, id="offset"),
        pytest.param("1970-01-01", -3600_000, id="a-day-in-the-zone-given"),
        pytest.param(" 1970-01-02 00:00 ", 23 * 3600_000, id="a-minute-in-the-zone-given"),
    ],
)
def test_times_are_milliseconds_or_iso_8601(text, ms):
    zone = parse_zone("Europe/Berlin")

    assert parse_time(text).in_zone(zone) == Times(ms)
    assert parse_times(f'{{"T":{{"broker-a":{{"1":"{text.strip()}"}}}}}}').in_zone(zone).at(A1) == ms


def test_a_star_stands_for_the_queues_not_named_at_its_level():
    spec = parse_offsets('{"T":{"broker-a":{"0":12,"*":-1},"*":-2},"*":-1}')
    others = [MessageQueue("T", "broker-c", 3), MessageQueue("U", "broker-a", 0)]

    assert spec[A0] == 12
    assert [default_of(queue, spec) for queue in (A1, B0, *others)] == [-1, -2, -2, -1]
    assert [queue for queue in spec if is_named(queue)] == [A0]
