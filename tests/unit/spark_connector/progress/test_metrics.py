"""Lag and rates out of the progress of a query."""

import json

import pytest

import spark_connector
from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from spark_connector.progress.metrics import LagHistory, LagPoint, _series, lag_of, rates_of
from spark_connector.read.stream_offsets import StreamOffsets

A, B, NEW = (MessageQueue("T", broker, 0) for broker in ("a", "b", "c"))


def source(start, end, latest):
    offsets = {"startOffset": start, "endOffset": end, "latestOffset": latest}
    return {name: json.dumps(of.to_json()) if of else "None" for name, of in offsets.items()}


def progress(*sources, seconds=2.0, timestamp="2025-01-01T00:00:00.000Z", query_id="q"):
    duration = {"triggerExecution": int(seconds * 1000)}
    return {"sources": sources, "durationMs": duration, "timestamp": timestamp, "id": query_id}


READ = source(
    StreamOffsets({A: 10, B: 0}), StreamOffsets({A: 20, B: 6}), StreamOffsets({A: 50, B: 6, NEW: 4})
)


def test_lag_is_what_is_stored_less_what_was_read():
    assert lag_of(progress(READ)) == {A: 30, B: 0, NEW: 4}


def test_lag_of_parsed_json_is_the_same():
    parsed = {name: json.loads(text) for name, text in READ.items()}

    assert lag_of(progress(parsed)) == lag_of(progress(READ))


@pytest.mark.parametrize("offset", ["None", "7", '{"topic": {"0": 3}}', None, "not json", "[1]"])
def test_sources_of_other_formats_have_no_lag(offset):
    other = dict.fromkeys(("startOffset", "endOffset", "latestOffset"), offset)

    assert (lag_of(progress(other)), rates_of(progress(other))) == ({}, {})


def test_of_two_sources_the_larger_lag_of_a_queue_counts():
    behind = source(None, StreamOffsets({A: 5}), StreamOffsets({A: 40}))

    assert lag_of(progress(READ, behind))[A] == 35


def test_rates_are_offsets_per_second_of_each_broker():
    assert rates_of(progress(READ, seconds=2)) == {"a": 5.0, "b": 3.0}


def test_the_rate_of_a_first_batch_counts_from_where_it_began():
    first = source(None, StreamOffsets({A: 20}, {A: 10}), StreamOffsets({A: 20}))

    assert rates_of(progress(first, seconds=1)) == {"a": 10.0}


def test_a_history_keeps_the_last_points():
    history = LagHistory(max_points=2)
    for second in range(3):
        history.add(progress(READ, timestamp=f"2025-01-01T00:00:0{second}.000Z"))

    assert [point.timestamp[-5:-1] for point in history.points] == [".000", ".000"]
    assert [point.timestamp[18] for point in history.points] == ["1", "2"]


def test_a_query_without_topics_leaves_no_point():
    history = LagHistory()

    history.add(progress())

    assert not history.points


@pytest.mark.process  # it draws for a second
@pytest.mark.parametrize(
    ("name", "begin"),
    [("lag.svg", b"<?xml"), ("lag.PNG", b"\x89PNG"), ("lag.pdf", b"%PDF"), ("lag", b"<?xml")],
)
def test_a_plot_has_the_format_that_its_name_says(tmp_path, name, begin):
    history = LagHistory()
    history.add(progress(READ))

    history.plot(tmp_path / name)

    assert (tmp_path / name).read_bytes().startswith(begin)


def test_a_plot_has_a_line_per_broker_over_the_times_in_order():
    late, early = (
        LagPoint("q", f"2025-01-01T00:00:0{second}.000Z", {A: second, B: 2 * second}, {}) for second in (5, 1)
    )

    times, lags = _series([late, early])

    assert [time.second for time in times] == [1, 5]
    assert lags == {A.broker_name: [1, 5], B.broker_name: [2, 10]}


def test_in_a_plot_of_two_queries_each_keeps_its_lag_until_it_reports_again():
    points = [
        LagPoint(query_id, f"2025-01-01T00:00:0{second}.000Z", lag, {})
        for second, (query_id, lag) in enumerate([("q", {A: 7}), ("r", {B: 1}), ("q", {})])
    ]

    assert _series(points)[1] == {A.broker_name: [7, 7, None], B.broker_name: [None, 1, 1]}


def test_a_plot_of_nothing_says_so(tmp_path):
    with pytest.raises(ConfigError, match="no progress to plot yet of query q2"):
        LagHistory().plot(tmp_path / "lag.svg", query_id="q2")


def test_the_package_offers_lag_and_nothing_unknown():
    assert spark_connector.LagHistory is LagHistory
    with pytest.raises(AttributeError, match="no attribute 'leg'"):
        _ = spark_connector.leg
