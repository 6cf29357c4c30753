"""The options of streaming reads: their values and combinations."""

import pytest

from spark_connector.options.batch_limits import Limits
from spark_connector.options.offsets import Bound, Times
from spark_connector.options.option import parse_duration
from tests.support.spark_options import stream_of


def test_a_stream_starts_at_the_latest_offset_without_limits_and_asks_once_a_second():
    options = stream_of()

    assert options.start == Bound("startingOffsets", "latest")
    assert options.limits == Limits()
    assert (options.poll_interval, options.commit_to) == (1.0, None)


def test_limits_are_read():
    options = stream_of(
        maxOffsetsPerTrigger="100", minOffsetsPerTrigger="10", maxTriggerDelay="5m", maxBytesPerTrigger="9"
    )

    assert options.limits == Limits(max_offsets=100, min_offsets=10, max_delay=300.0, max_bytes=9)


@pytest.mark.parametrize(
    ("text", "seconds"), [("250", 0.25), ("500ms", 0.5), (" 30 S ", 30), ("15m", 900), ("1h", 3600), ("0", 0)]
)
def test_times_are_read_as_spark_reads_them(text, seconds):
    assert parse_duration(text) == seconds


def test_the_group_is_told_only_on_request():
    assert stream_of(group="g").commit_to is None
    assert stream_of(group="g", commitOffsetsToGroup="true").commit_to == "g"


def test_a_stream_ends_only_where_an_end_is_given_and_the_time_for_all_wins():
    ends = {"endingOffsets": "latest", "endingTimestamp": "1700000000007"}

    assert stream_of().end is None
    assert stream_of(endingOffsets="latest").end == Bound("endingOffsets", "latest")
    assert stream_of(**ends).end == Bound("endingTimestamp", Times(1_700_000_000_007))


def test_topics_must_exist_unless_told_otherwise():
    assert (stream_of().must_exist, stream_of(mustExist="false").must_exist) == (True, False)
