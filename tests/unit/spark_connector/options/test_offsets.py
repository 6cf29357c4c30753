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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("latests", "neither earliest, latest, group nor JSON", id="a-word-nobody-knows"),
        pytest.param('{"T":{"a":{"0":1}', "at line 1 column 18", id="cut-off"),
        pytest.param('{"T":\n{"a" {"0":1}}}', "at line 2 column 6", id="second-line"),
        pytest.param("[1]", "the whole is [1]: want an object of topics", id="a-list"),
        pytest.param("{}", "the whole is empty", id="empty"),
        pytest.param('{"T":5}', "topic 'T' is 5: want an object of broker names", id="no-brokers"),
        pytest.param('{"T":{"a":[]}}', "broker 'a' is []: want an object of queue ids", id="no-queues"),
        pytest.param('{"T":{"a":{"x":1}}}', "queue id 'x'", id="queue-id-no-number"),
        pytest.param('{"T":{"a":{"-1":1}}}', "queue id '-1'", id="queue-id-negative"),
        pytest.param('{"T":{"a":{"01":1}}}', "queue id '01'", id="queue-id-with-leading-zero"),
        pytest.param('{"T":{"a":{"0":"1"}}}', 'offset "1" of T/a/0', id="offset-text"),
        pytest.param('{"T":{"a":{"0":1.0}}}', "offset 1.0 of T/a/0", id="offset-fraction"),
        pytest.param('{"T":{"a":{"0":true}}}', "offset true of T/a/0", id="offset-boolean"),
        pytest.param(
            '{"T":{"a":{"0":-3}}}',
            "offset -3 of T/a/0: want a whole number; -2 is a queue's earliest",
            id="offset-too-small",
        ),
        pytest.param(
            '{"T":{"a":{"0":9223372036854775808}}}', "offset 9223372036854775808", id="offset-too-large"
        ),
        pytest.param('{"T":{"a":{"0":1,"0":2}}}', "'0' is given twice", id="queue-twice"),
        pytest.param('{"T":{"a":{"0":1}},"T":{"a":{"1":2}}}', "'T' is given twice", id="topic-twice"),
    ],
)
def test_malformed_offsets_are_refused_with_the_place(text, says):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the text is compared below, special characters and all
        parse_offset_spec(text)

    assert says in str(refusal.value)


def test_times_are_for_all_queues_or_for_each():
    assert Times(5).at(A0) == 5
    assert parse_times('{"T":{"broker-a":{"1":100000000000}}}').in_zone(None).at(A1) == 10**11


def test_times_before_1970_are_refused():
    with pytest.raises(ValueError, match="time -1 of T/broker-a/1: want a whole number; milliseconds"):
        parse_times('{"T":{"broker-a":{"1":-1}}}')


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


@pytest.mark.parametrize("time", [1, 1769853600, 10**11 - 1])
def test_seconds_given_for_milliseconds_are_refused_with_the_milliseconds(time):
    remedy = f"if these are seconds, give {time}000; a time before 1973 as 1970-01-31T10:00:00Z"

    with pytest.raises(ValueError, match=f"{time} milliseconds since 1970 are a time on 197.*{remedy}"):
        parse_time(str(time))
    with pytest.raises(ValueError, match=f"time {time} of T/broker-a/1: {time} milliseconds.*{remedy}"):
        parse_times(f'{{"T":{{"broker-a":{{"1":{time}}}}}}}')


def test_a_star_stands_for_the_queues_not_named_at_its_level():
    spec = parse_offsets('{"T":{"broker-a":{"0":12,"*":-1},"*":-2},"*":-1}')
    others = [MessageQueue("T", "broker-c", 3), MessageQueue("U", "broker-a", 0)]

    assert spec[A0] == 12
    assert [default_of(queue, spec) for queue in (A1, B0, *others)] == [-1, -2, -2, -1]
    assert [queue for queue in spec if is_named(queue)] == [A0]
