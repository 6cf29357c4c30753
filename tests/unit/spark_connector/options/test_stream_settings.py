"""The options of streaming reads: their values and combinations."""

import pytest

from rmqtools.errors import ConfigError
from spark_connector.options.batch_limits import Limits
from spark_connector.options.offsets import Bound, Times
from spark_connector.options.option import parse_duration
from spark_connector.options.option_table import parse_options
from spark_connector.options.stream_settings import StreamOptions, stream_options


def options_of(**given: str) -> StreamOptions:
    return stream_options(parse_options({"nameServer": "localhost:9876", "topic": "T", **given}))


def test_a_stream_starts_at_the_latest_offset_without_limits_and_asks_once_a_second():
    options = options_of()

    assert options.start == Bound("startingOffsets", "latest")
    assert options.limits == Limits()
    assert (options.poll_interval, options.commit_to) == (1.0, None)


def test_limits_are_read():
    options = options_of(
        maxOffsetsPerTrigger="100", minOffsetsPerTrigger="10", maxTriggerDelay="5m", maxBytesPerTrigger="9"
    )

    assert options.limits == Limits(max_offsets=100, min_offsets=10, max_delay=300.0, max_bytes=9)


@pytest.mark.parametrize(
    ("text", "seconds"), [("250", 0.25), ("500ms", 0.5), (" 30 S ", 30), ("15m", 900), ("1h", 3600), ("0", 0)]
)
def test_times_are_read_as_spark_reads_them(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"pollInterval": "-1s"}, "it is no time", id="negative"),
        pytest.param({"maxOffsetsPerTrigger": "0"}, "want 1 or more, got 0", id="zero"),
        pytest.param({"commitOffsetsToGroup": "true"}, "needs option 'group'", id="no-group"),
        pytest.param({"maxTriggerDelay": "1m"}, "needs option 'minOffsetsPerTrigger'", id="only-delay"),
        pytest.param(
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            "'minOffsetsPerTrigger' = 5 is more than 'maxOffsetsPerTrigger' = 4",
            id="min-over-max",
        ),
        pytest.param(
            {"asMember": "1.2.3.4", "group": "g"}, "'asMember' is for batch reads only", id="member"
        ),
    ],
)
def test_what_cannot_be_is_refused(given, says):
    with pytest.raises(ConfigError, match=says):
        options_of(**given)


def test_the_group_is_told_only_on_request():
    assert options_of(group="g").commit_to is None
    assert options_of(group="g", commitOffsetsToGroup="true").commit_to == "g"


def test_a_stream_ends_only_where_an_end_is_given_and_the_time_for_all_wins():
    ends = {"endingOffsets": "latest", "endingTimestamp": "1700000000007"}

    assert options_of().end is None
    assert options_of(endingOffsets="latest").end == Bound("endingOffsets", "latest")
    assert options_of(**ends).end == Bound("endingTimestamp", Times(1_700_000_000_007))


def test_topics_must_exist_unless_told_otherwise():
    assert (options_of().must_exist, options_of(mustExist="false").must_exist) == (True, False)
