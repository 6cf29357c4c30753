import time
from zoneinfo import ZoneInfo

import pytest

from rmqtools.errors import ConfigError, ProtocolError
from rmqtools.model.group import ConsumeFromWhere
from rmqtools.policy.start_offset import (
    DEPRECATED_CONSUME_FROM,
    StartAt,
    checked_offset,
    consume_from_where,
    parse_consume_timestamp,
    start_offset,
)

LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
TIMESTAMP = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP


@pytest.mark.parametrize("consume_from", ConsumeFromWhere)
@pytest.mark.parametrize("topic", ["T", "%RETRY%g"])
def test_a_committed_offset_wins_over_everything(consume_from, topic):
    assert [start_offset(offset, consume_from, topic) for offset in (0, 5)] == [0, 5]


@pytest.mark.parametrize(
    ("consume_from", "topic", "start"),
    [
        (LAST, "T", StartAt.MAX_OFFSET),
        (LAST, "%RETRY%g", 0),
        (FIRST, "T", 0),
        (FIRST, "%RETRY%g", 0),
        (TIMESTAMP, "T", StartAt.SEARCH_TIMESTAMP),
        (TIMESTAMP, "%RETRY%g", StartAt.MAX_OFFSET),
        (LAST, "%DLQ%g", StartAt.MAX_OFFSET),
    ],
)
def test_a_group_without_offset_begins_where_it_was_told(consume_from, topic, start):
    assert start_offset(None, consume_from, topic) == start


@pytest.mark.parametrize("offset", [-1, -2])
def test_a_negative_offset_is_no_start(offset):
    with pytest.raises(ProtocolError, match=f"offset {offset}"):
        start_offset(offset, LAST, "T")


def test_a_negative_answer_is_no_start():
    with pytest.raises(ProtocolError):
        checked_offset(-1)


@pytest.mark.parametrize("name", DEPRECATED_CONSUME_FROM)
def test_deprecated_names_mean_the_last_offset_where_they_are_taken(name):
    assert consume_from_where(name) is LAST
    with pytest.raises(ConfigError, match=name):
        consume_from_where(name, accept_deprecated=False)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="CONSUME_FROM_TIMESTAMP"):
        consume_from_where("FIRST")


# What UtilAll.parseDate of the Java client answers.
@pytest.mark.parametrize(
    ("zone", "text", "milliseconds"),
    [
        ("UTC", "20231114221320", 1700000000000),
        ("Asia/Shanghai", "20231114221320", 1699971200000),
        pytest.param("Europe/Berlin", "20240331023000", 1711848600000, id="skipped"),
        pytest.param("Europe/Berlin", "20241027023000", 1729992600000, id="shown-twice"),
        pytest.param("America/New_York", "20241103013000", 1730615400000, id="shown-twice-behind-utc"),
        pytest.param("Australia/Lord_Howe", "20240407014500", 1712416500000, id="half-an-hour"),
    ],
)
def test_a_timestamp_is_local_time(zone, text, milliseconds):
    assert parse_consume_timestamp(text, ZoneInfo(zone)) == milliseconds


def test_without_zone_it_is_the_time_of_this_machine(monkeypatch):

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert parse_consume_timestamp("20231115071320") == 1700000000000
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text", ["", "2023", "20231114 22132", "+2023111422132", "20230132000000", "20231301000000"]
)
def test_other_text_is_no_timestamp(text):
    with pytest.raises(ConfigError, match="consume_timestamp="):
        parse_consume_timestamp(text, ZoneInfo("UTC"))
