"""More ways to give wrong options: times, ends of streams, stamps, copies; see ``test_option_errors``."""

import pytest

from spark_connector.datasource import RocketMQDataSource
from tests.unit.spark_connector.options.test_option_errors import BOTH, case, load, plan, save


def stream(options):
    """What Spark does at the start of a query, up to where brokers are asked."""
    source = RocketMQDataSource({name.lower(): text for name, text in options.items()})
    return source.streamReader(source.schema())


@pytest.mark.parametrize(
    ("when", "options", "says"),
    [
        case(
            load,
            BOTH | {"startingTimestamp": "2024-01-01"},
            "option 'startingTimestamp': 2024-01-01T00:00:00 has no time zone",
            "set option 'timeZone'",
            id="time-without-zone",
        ),
        case(
            load,
            BOTH | {"startingOffsetsByTimestamp": '{"T":{"a":{"0":"noon"}}}'},
            'time "noon" of T/a/0: neither milliseconds since 1970',
            id="no-time-of-a-queue",
        ),
        case(
            load,
            BOTH | {"timeZone": "Europe/Atlantis"},
            "option 'timeZone' = 'Europe/Atlantis': there is no such time zone; want a time zone",
            id="no-time-zone",
        ),
        case(
            load,
            BOTH | {"startingOffsets": '{"T":{"a":{"0":1,"*":7}}}'},
            "offset 7 of T/a/*: want one of -2, -1",
            id="default-that-is-an-offset",
        ),
        case(
            load,
            BOTH | {"startingOffsetsByTimestamp": '{"T":{"*":7}}'},
            "broker '*' is 7: want an object of queue ids",
            id="default-time",
        ),
        case(
            save,
            BOTH | {"stampId": "run-7"},
            "option 'stampId' is for stamps: set option 'stamp' to true",
            id="stamp-id-without-stamps",
        ),
        case(
            save,
            BOTH | {"stamp": "true", "stampId": "a\nb"},
            "option 'stampId' = 'a\\nb': it has control characters",
            id="stamp-id-no-text",
        ),
        case(
            load,
            BOTH | {"planningTimeout": "soon"},
            "option 'planningTimeout' = 'soon': it is no time",
            "500ms, 30s",
            id="no-length-of-time",
        ),
        case(
            save,
            BOTH | {"keepQueue": "true"},
            "option 'keepQueue' is for rows that were read",
            "leave it out",
            id="keep-the-queue-of-rows-that-were-not-read",
        ),
        case(save, BOTH | {"keepQueue": "1"}, "option 'keepQueue' = '1': want true or false", id="no-keep"),
        case(
            save,
            BOTH | {"createTopic": "no"},
            "option 'createTopic' = 'no': want true or false",
            id="no-flag-of-topics",
        ),
        case(
            stream,
            BOTH | {"mustExist": "never"},
            "option 'mustExist' = 'never': want true or false",
            id="no-flag-of-waiting",
        ),
        case(
            plan,
            BOTH | {"mustExist": "false"},
            "option 'mustExist' is for streaming reads only: leave it out when reading a batch",
            id="waiting-in-a-batch",
        ),
        case(
            stream,
            BOTH | {"endingOffsets": "soon"},
            "option 'endingOffsets' = 'soon': neither earliest, latest, group nor JSON",
            id="no-end-of-a-stream",
        ),
        case(
            stream,
            BOTH | {"endingTimestamp": "2026-01-01"},
            "option 'endingTimestamp': 2026-01-01T00:00:00 has no time zone",
            id="end-of-a-stream-without-zone",
        ),
        case(
            load,
            BOTH | {"columns": "body,bodi"},
            "option 'columns' = 'body,bodi': there is no column 'bodi' (did you mean 'body'?)",
            "want column names separated by commas",
            id="no-such-column",
        ),
        case(
            load,
            BOTH | {"columns": "body,body"},
            "option 'columns' = 'body,body': a name is given twice",
            id="column-twice",
        ),
        case(
            load,
            BOTH | {"columns": "body", "includeProperties": "false"},
            "options 'columns' and 'includeProperties' exclude each other: name it in 'columns'",
            id="columns-and-properties",
        ),
        case(
            plan,
            BOTH | {"messageKeys": "a,,b"},
            "option 'messageKeys' = 'a,,b': it is empty; want keys separated by commas",
            id="empty-key",
        ),
        case(
            plan,
            BOTH | {"messageIds": "a,a"},
            "option 'messageIds' = 'a,a': a name is given twice",
            id="id-twice",
        ),
        case(
            plan,
            BOTH | {"messageKeys": "a", "startingOffsets": "earliest"},
            "options 'messageKeys' and 'startingOffsets' exclude each other",
            "or read the topic without 'messageKeys' and filter",
            id="key-and-offsets",
        ),
        case(
            plan,
            BOTH | {"messageIds": "a", "minPartitions": "3"},
            "options 'messageIds' and 'minPartitions' exclude each other",
            id="id-and-partitions",
        ),
        case(
            stream,
            BOTH | {"messageKeys": "a"},
            "option 'messageKeys' is for batch reads only: leave it out when reading a stream",
            id="key-of-a-stream",
        ),
        case(
            save,
            BOTH | {"messageIds": "a"},
            "option 'messageIds' is for batch reads only: leave it out when writing",
            id="id-of-a-write",
        ),
        case(
            save,
            BOTH | {"onBadRow": "drop"},
            "option 'onBadRow' = 'drop': it is none of them",
            "want fail, skip or topic:NAME",
            id="no-way-with-bad-rows",
        ),
        case(
            save,
            BOTH | {"onBadRow": "topic:a b"},
            "option 'onBadRow' = 'topic:a b'",
            "or the topic's name has a character outside",
            id="no-topic-for-bad-rows",
        ),
        case(
            save,
            BOTH | {"onBadRow": "topic:T"},
            "option 'onBadRow' = 'topic:T': rows are written to this topic; name another one",
            id="bad-rows-into-the-topic-itself",
        ),
        case(
            load,
            BOTH | {"onBadRow": "skip"},
            "option 'onBadRow' is for writes only: leave it out when reading",
            id="bad-rows-of-a-read",
        ),
        case(
            stream,
            BOTH | {"endingOffsets": "earliest"},
            "option 'endingOffsets' = 'earliest': such a stream reads nothing; end at latest or at offsets",
            id="stream-ending-at-its-start",
        ),
    ],
)
def test_wrong_options_are_refused_by_name_value_and_remedy(when, options, says):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the text is compared below
        when(options)

    text = str(refusal.value)
    assert [part for part in says if part not in text] == [], text
