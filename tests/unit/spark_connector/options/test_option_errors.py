"""Every way to give wrong options: refused at load() or at the first plan, by option, value and remedy.

One file because it is one table: whoever adds an option looks for its error here.
"""

import json

import pytest

from rmqtools.clock import SYSTEM_CLOCK
from spark_connector.datasource import RocketMQDataSource
from spark_connector.read.schema import READ_SCHEMA

SERVER = {"nameServer": "h:1"}
TOPIC = {"topic": "T"}
BOTH = SERVER | TOPIC
CATALOG = "CREATE TEMPORARY VIEW name USING rocketmq OPTIONS (nameServer 'host:port', topic 'Orders')"
READERS = BOTH | {"readers": "2"}
TOMORROW = str(SYSTEM_CLOCK.now_ms() + 24 * 3600 * 1000)


@pytest.fixture(autouse=True)
def _no_name_server_in_the_environment(monkeypatch):
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)


def load(options):
    """What Spark does at load()."""
    return RocketMQDataSource({name.lower(): text for name, text in options.items()}).schema()


def plan(options):
    """What Spark does at the first action, up to where brokers are asked."""
    source = RocketMQDataSource({name.lower(): text for name, text in options.items()})
    return source.reader(source.schema())


def save(options):
    """What Spark does at save()."""
    source = RocketMQDataSource({name.lower(): text for name, text in options.items()})
    return source.writer(_body_only(), overwrite=False)


def stream(options):
    """What Spark does at the start of a query, up to where brokers are asked."""
    source = RocketMQDataSource({name.lower(): text for name, text in options.items()})
    return source.streamReader(source.schema())


def _body_only():
    return type(READ_SCHEMA)([READ_SCHEMA["body"]])


def case(when, options, *says, id):
    return pytest.param(when, options, says, id=id)


@pytest.mark.parametrize(
    ("when", "options", "says"),
    [
        case(
            load,
            BOTH | {"startingOffset": "x"},
            "unknown option 'startingoffset'",
            "did you mean 'startingOffsets'?",
            id="unknown",
        ),
        case(
            load,
            BOTH | {"zzz": "x"},
            "unknown option 'zzz'",
            "are known, the nearest: ",
            id="like-no-other",
        ),
        case(load, {}, "no option is given, set nameServer and topic", CATALOG, id="no-option"),
        case(load, {"path": "/t"}, "no option is given", CATALOG, id="a-catalog-table-with-a-location"),
        case(stream, {}, "no option is given", CATALOG, id="no-option-of-a-stream"),
        case(save, {}, "no option is given", CATALOG, id="no-option-of-a-write"),
        case(save, SERVER, "where to write is not given", CATALOG, id="no-topic-of-a-write"),
        case(
            load,
            {"option.nameServer": "h:1", "option.topic": "T", "provider": "rocketmq"},
            "format rocketmq has no catalog tables",
            CATALOG,
            id="options-of-a-new-catalog-table",
        ),
        case(load, BOTH | {"owner": "me"}, "no catalog tables", CATALOG, id="properties-of-a-catalog-table"),
        case(load, TOPIC, "option 'nameServer' is required, as host:port", id="no-name-server"),
        case(
            load,
            TOPIC | {"nameServer": " "},
            "option 'nameServer' = ' ': it is empty",
            id="empty-name-server",
        ),
        case(load, TOPIC | {"nameServer": "h"}, "option 'nameServer' = 'h'", "port", id="no-port"),
        case(load, SERVER, "neither option 'topic' nor 'topics'", "option('topic', 'Orders')", id="no-topic"),
        case(
            load,
            BOTH | {"topics": "U"},
            "both 'topic' and 'topics' are given; give one",
            id="topic-and-topics",
        ),
        case(
            load,
            BOTH | {"topicPattern": "U.*"},
            "both 'topic' and 'topicPattern' are given; give one",
            id="topic-and-pattern",
        ),
        case(
            load,
            SERVER | {"topicPattern": "U", "assign": '{"T":{"a":[0]}}'},
            "both 'topicPattern' and 'assign'",
            id="pattern-and-assign",
        ),
        case(load, SERVER | {"topic": " "}, "option 'topic' = ' ': it is empty", id="empty-topic"),
        case(
            load,
            SERVER | {"topics": "a,,b"},
            "option 'topics' = 'a,,b': it is empty",
            id="empty-name-in-a-list",
        ),
        case(
            load,
            SERVER | {"topics": "a,a"},
            "option 'topics' = 'a,a': a name is given twice",
            id="name-twice",
        ),
        case(
            load,
            SERVER | {"topicPattern": "a("},
            "option 'topicPattern' = 'a(': no regular expression",
            "at position 1",
            id="bad-pattern",
        ),
        case(
            load,
            SERVER | {"assign": "T"},
            "option 'assign' = 'T': it is no JSON",
            "line 1 column 1",
            id="assign-no-json",
        ),
        case(
            load,
            SERVER | {"assign": '{"T":{"a":0}}'},
            "broker 'a' of topic 'T' is 0: want a list of queue ids",
            id="assign-no-list",
        ),
        case(load, SERVER | {"assign": '{"T":{"a":[0,0]}}'}, "a queue id is given twice", id="assign-twice"),
        case(
            load,
            BOTH | {"tags": "a||"},
            "option 'tags' = 'a||': it is empty",
            "separated by ||",
            id="empty-tag",
        ),
        case(
            load,
            BOTH | {"tags": "a", "sql": "a > 5"},
            "options 'tags' and 'sql' exclude each other",
            "drop one",
            id="tags-and-sql",
        ),
        case(
            load,
            BOTH | {"startingOffsets": '{"T":{"a" 1}}'},
            "option 'startingOffsets' = ",
            "at line 1 column 11",
            id="json-position",
        ),
        case(
            load,
            BOTH | {"startingOffsets": "early"},
            "'early': neither earliest, latest, group nor JSON",
            id="no-word",
        ),
        case(
            load,
            BOTH | {"endingOffsets": '{"T":{"a":{"0":-5}}}'},
            "offset -5 of T/a/0",
            "-2 is a queue's earliest",
            id="offset-too-small",
        ),
        case(
            load,
            BOTH | {"startingOffsets": "group"},
            "option 'startingOffsets' = 'group' needs option 'group'",
            id="group-unnamed",
        ),
        case(
            load,
            BOTH | {"endingOffsets": "group"},
            "option 'endingOffsets' = 'group' needs option 'group'",
            id="end-group-unnamed",
        ),
        case(
            load,
            BOTH | {"groupOffsetFallback": "none"},
            "option 'groupOffsetFallback' = 'none'",
            "earliest, latest or error",
            id="no-fallback",
        ),
        case(load, BOTH | {"readGroup": " "}, "option 'readGroup' = ' ': it is empty", id="empty-read-group"),
        case(
            save,
            BOTH | {"readGroup": "g"},
            "option 'readGroup' is for reads only: leave it out when writing",
            id="read-group-of-a-write",
        ),
        case(
            load,
            BOTH | {"corruptBody": "skip"},
            "option 'corruptBody' = 'skip'",
            "fail, raw or null",
            id="no-such-treatment-of-corrupt-bodies",
        ),
        case(
            load,
            BOTH | {"startingTimestamp": "yesterday"},
            "option 'startingTimestamp' = 'yesterday': neither milliseconds since 1970 nor a time",
            "as 2026-01-31T10:00:00Z",
            id="no-timestamp",
        ),
        case(load, BOTH | {"startingTimestamp": "-1"}, "want 0 or more, got -1", id="negative-timestamp"),
        case(
            load,
            BOTH | {"startingTimestamp": "1769853600"},
            "option 'startingTimestamp' = '1769853600': 1769853600 milliseconds since 1970 are a time on",
            "1970-01-21; if these are seconds, give 1769853600000",
            id="seconds-for-milliseconds",
        ),
        case(
            plan,
            BOTH | {"endingOffsetsByTimestamp": '{"T":{"a":{"0":1769853600}}}'},
            "time 1769853600 of T/a/0: 1769853600 milliseconds since 1970",
            "give 1769853600000",
            id="seconds-of-a-queue",
        ),
        case(
            load,
            BOTH | {"startingTimestamp": TOMORROW},
            f"option 'startingTimestamp': {TOMORROW} is in the future",
            "of a time that has been",
            id="future",
        ),
        case(
            load,
            BOTH | {"startingOffsetsByTimestamp": json.dumps({"T": {"a": {"0": int(TOMORROW)}}})},
            f"{TOMORROW} is in the future",
            id="future-of-a-queue",
        ),
        case(
            load,
            BOTH | {"startingOffsetsByTimestamp": "5"},
            "the whole is 5: want an object of topics",
            id="timestamps-no-object",
        ),
        case(
            load,
            BOTH | {"startingOffsetsByTimestampStrategy": "earliest"},
            "= 'earliest': it is none of them; want error or latest",
            id="no-strategy",
        ),
        case(
            load,
            BOTH | {"minPartitions": "0"},
            "option 'minPartitions' = '0': want 1 or more",
            id="count-of-nothing",
        ),
        case(
            load,
            BOTH | {"maxRecordsPerPartition": "many"},
            "option 'maxRecordsPerPartition' = 'many'",
            id="no-number",
        ),
        case(
            load,
            BOTH | {"includeProperties": "yes"},
            "option 'includeProperties' = 'yes': want true or false",
            id="no-flag",
        ),
        case(
            load, BOTH | {"secretKey": "hunter2"}, "access_key and secret_key go together", id="half-secret"
        ),
        case(load, BOTH | {"secretKey": " "}, "option 'secretKey' = ***: it is empty", id="empty-secret"),
        case(
            load,
            BOTH | {"rocketmq.nameServer": "h:2"},
            "'nameServer' and 'rocketmq.nameserver'",
            "are the same: give one",
            id="name-server-twice",
        ),
        case(
            load,
            BOTH | {"rocketmq.requestTimeou": "1"},
            "did you mean 'request_timeout'?",
            id="unknown-setting",
        ),
        case(
            load,
            BOTH | {"sendTimeoutMs": "1"},
            "option 'sendTimeoutMs' is for writes only: leave it out when reading",
            id="write-option",
        ),
        case(
            load,
            READERS | {"readerIds": "a@1"},
            "option 'readers' = 2, but 'readerIds' names 1: drop 'readers'",
            id="counts-differ",
        ),
        case(
            load,
            READERS | {"minPartitions": "3"},
            "option 'minPartitions' splits queues",
            id="readers-and-splits",
        ),
        case(
            load,
            BOTH | {"allocator": "AVG"},
            "option 'allocator' needs 'readers', 'readerIds' or 'asMember'",
            id="allocator-alone",
        ),
        case(
            load,
            READERS | {"allocator": "AVERAGE"},
            "option 'allocator' = 'AVERAGE'",
            "unknown allocation strategy",
            id="no-such-allocator",
        ),
        case(
            load,
            READERS | {"allocator": "no.module:Class"},
            "strategy 'no.module:Class'",
            "Set RMQTOOLS_SPARK_PLUG_INS=no.module before Spark starts",
            id="no-module",
        ),
        case(
            load,
            READERS | {"allocator": "json:loads"},
            "option 'allocator' = 'json:loads'",
            id="no-strategy-at-all",
        ),
        case(
            load,
            READERS | {"allocator": "PINNED_BY_IP"},
            "option 'allocator' = 'PINNED_BY_IP'",
            "'ips'",
            id="setting-missing",
        ),
        case(
            load,
            READERS | {"allocator.colour": "x"},
            "option 'allocator' = 'AVG'",
            "option of strategy AVG 'colour'",
            id="setting-unknown",
        ),
        case(
            load,
            READERS | {"allocator": "PINS"},
            "option 'allocator' = 'PINS' follows the pins of a live group",
            "pin readers by 'allocator' = 'PINNED_BY_IP' and 'allocator.ips'",
            id="readers-by-live-pins",
        ),
        case(
            load,
            READERS | {"allocator": "PINNED_BY_IP", "allocator.ips": "moon"},
            "ip 'moon'",
            "want e.g. 10.0.0.1",
            id="setting-wrong",
        ),
        case(
            load,
            READERS | {"asMember": "a@1", "group": "g"},
            "'asMember' and 'readers' exclude each other",
            id="member-and-readers",
        ),
        case(
            load, BOTH | {"asMember": "a@1"}, "option 'asMember' needs option 'group'", id="member-of-nothing"
        ),
        case(
            plan,
            BOTH | {"startingOffsets": "latest"},
            "option 'startingOffsets' = 'latest'",
            "reads nothing; start at earliest",
            id="start-latest",
        ),
        case(
            plan,
            BOTH | {"startingOffsets": '{"T":{"a":{"0":-1}}}'},
            "option 'startingOffsets' = -1 (latest)",
            "reads nothing",
            id="start-latest-in-json",
        ),
        case(
            plan,
            BOTH | {"endingOffsets": "earliest"},
            "option 'endingOffsets' = 'earliest'",
            "reads nothing; end at latest",
            id="end-earliest",
        ),
        case(
            plan,
            BOTH | {"endingOffsets": '{"T":{"a":{"0":-2}}}'},
            "option 'endingOffsets' = -2 (earliest)",
            id="end-earliest-in-json",
        ),
        case(save, TOPIC, "option 'nameServer' is required", id="write-without-name-server"),
        case(
            save,
            BOTH | {"endingOffsets": "latest"},
            "option 'endingOffsets' is for reads only: leave it out when writing",
            id="batch-option-at-a-write",
        ),
        case(
            save,
            BOTH | {"readers": "2"},
            "option 'readers' is for reads only: leave it out when writing",
            id="read-option-at-a-write",
        ),
        case(save, BOTH | {"batchBytes": "0"}, "option 'batchBytes' = '0': want 1 or more", id="no-bytes"),
        case(
            save,
            BOTH | {"sendTimeoutMs": "1", "rocketmq.send_timeout": "2"},
            "'sendTimeoutMs' and 'rocketmq.send",
            "are the same",
            id="setting-twice",
        ),
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
            BOTH | {"columns": "key,value"},
            "there is no column 'key' (did you mean 'keys'?)",
            id="column-of-kafka",
        ),
        case(
            load,
            {"subscribe": "T"} | SERVER,
            "unknown option 'subscribe' for format rocketmq (Kafka's, here: topic, or topics for several)",
            id="option-of-kafka",
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
    assert "hunter2" not in text


def test_a_schema_that_is_not_ours_is_refused_at_the_first_plan():
    other = type(READ_SCHEMA)().add("text", "string")

    with pytest.raises(
        ValueError, match=r"column 'text', which format rocketmq does not read.*or drop \.schema"
    ):
        RocketMQDataSource({"nameserver": "h:1", "topic": "T"}).reader(other)
