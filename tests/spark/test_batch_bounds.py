"""Where a batch starts and ends: by time, by the offsets of a group, and what wins over what."""

import json
from uuid import uuid4

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError

COUNT = 60


@pytest.fixture(scope="module")
def timed(fill_new):
    """A topic of two queues, 60 messages each, a few milliseconds apart."""
    return fill_new(COUNT, queues=1)


@pytest.fixture
def rows(timed, read_rows):
    return sorted(read_rows(topic=timed), key=lambda row: (row.brokerName, row.queueOffset))


@pytest.fixture
def group():
    return f"group-{uuid4().hex[:8]}"


def refusal(action):
    with pytest.raises(ConfigError) as error:
        action()
    return str(error.value)


def stored_ms(row):
    return round(row.storeTimestamp.timestamp() * 1000)


def places(rows):
    return sorted((row.brokerName, row.queueOffset) for row in rows)


def test_what_was_stored_at_a_time_or_later_is_after_a_start_and_behind_an_end(timed, read_rows, rows):
    time = stored_ms(rows[COUNT // 2])
    before, later = ([row for row in rows if (stored_ms(row) >= time) is late] for late in (False, True))

    assert 0 < len(later) < len(rows)
    assert places(read_rows(topic=timed, startingTimestamp=time)) == places(later)
    assert places(read_rows(topic=timed, endingTimestamp=time)) == places(before)


def test_a_time_per_queue_counts_for_that_queue(timed, read_rows, rows):
    of_a, of_b = stored_ms(rows[10]), stored_ms(rows[COUNT + 40])
    times = json.dumps({timed: {"broker-a": {"0": of_a}, "broker-b": {"0": of_b}}})

    found = len(read_rows(topic=timed, startingOffsetsByTimestamp=times, endingOffsetsByTimestamp=times))
    later = read_rows(topic=timed, startingOffsetsByTimestamp=times)

    assert found == 0
    assert places(later) == places(
        row for row in rows if stored_ms(row) >= {"broker-a": of_a, "broker-b": of_b}[row.brokerName]
    )


def test_a_start_after_the_last_message_is_an_error_unless_told_otherwise(timed, read_rows, rows):
    after = max(map(stored_ms, rows)) + 1

    text = refusal(lambda: read_rows(topic=timed, startingTimestamp=after))
    latest = read_rows(topic=timed, startingTimestamp=after, startingOffsetsByTimestampStrategy="latest")

    assert f"option 'startingTimestamp': {timed}/broker-a/0, {timed}/broker-b/0 has no message stored" in text
    assert latest == []


def test_a_start_after_the_end_names_queue_and_options(timed, read_rows, rows):
    options = {"startingTimestamp": stored_ms(rows[40]), "endingTimestamp": stored_ms(rows[10])}

    text = refusal(lambda: read_rows(topic=timed, **options))

    assert f"{timed}/broker-a/0 would be read from" in text
    assert "set startingTimestamp at or before endingTimestamp" in text


@pytest.mark.parametrize(("fallback", "count"), [("earliest", COUNT + 20), ("latest", 20)])
def test_a_group_says_where_to_start_and_a_fallback_for_the_other_queues(
    timed, read_rows, admin, group, fallback, count
):
    admin.update_consumer_offset(group, MessageQueue(timed, "broker-a", 0), COUNT - 20)

    frame = read_rows(topic=timed, startingOffsets="group", group=group, groupOffsetFallback=fallback)

    assert len(frame) == count


def test_what_a_group_has_consumed_is_the_other_end(timed, read_rows, admin, group):
    for broker, offset in (("broker-a", 20), ("broker-b", 5)):
        admin.update_consumer_offset(group, MessageQueue(timed, broker, 0), offset)

    consumed = len(read_rows(topic=timed, endingOffsets="group", group=group))
    to_come = len(read_rows(topic=timed, startingOffsets="group", group=group))

    assert (consumed, to_come) == (25, 2 * COUNT - 25)


def test_reading_leaves_no_trace_in_the_group(timed, read_rows, admin, group):
    len(read_rows(topic=timed, startingOffsets="group", group=group))

    assert set(admin.fetch_consumer_offsets(group, timed).values()) == {None}
    assert admin.fetch_consumer_ids(group) == []


def test_an_end_is_fixed_once_for_all_actions_on_a_frame(make_topic, read, write):
    topic = make_topic(queues=1)
    write([("a",)], "body string", topic=topic)
    frame = read(topic=topic)
    before = frame.count()
    write([("b",)], "body string", topic=topic)

    assert (before, frame.count(), read(topic=topic).count()) == (1, 1, 2)
