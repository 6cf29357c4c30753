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


def load(source):
    """What Spark does at load()."""
    source.schema()


def plan(source):
    """What Spark does at the first action, up to where brokers are asked."""
    source.reader(source.schema())


def save(source):
    """What Spark does at save()."""
    source.writer(type(READ_SCHEMA)([READ_SCHEMA["body"]]), overwrite=False)


def stream(source):
    """What Spark does at the start of a query, up to where brokers are asked."""
    source.streamReader(source.schema())


def case(id, when, options, *says):
    return pytest.param(when, options, says, id=id)


def wrong(id, when, name, text, why="", *says, base=BOTH):
    """One option whose text is refused."""
    return case(id, when, base | {name: text}, f"option '{name}' = {text!r}{why}", *says)


def misplaced(id, when, name, text, place, here):
    """An option of something else."""
    refusal = f"option '{name}' is for {place} only: leave it out when {here}"
    return case(id, when, BOTH | {name: text}, refusal)


CASES = [
    case(
        "function-as-address-map",
        load,
        BOTH | {"brokerAddressMap": str(load)},
        "a function cannot travel in an option of Spark",
    ),
    case(
        "unknown",
        load,
        BOTH | {"startingOffset": "x"},
        "unknown option 'startingoffset'",
        "did you mean 'startingOffsets'?",
    ),
    case("no-option", load, {}, "no option is given, set nameServer and topic", CATALOG),
    case("a-catalog-table-with-a-location", load, {"path": "/t"}, "no option is given", CATALOG),
    case("no-option-of-a-stream", stream, {}, "no option is given", CATALOG),
    case("no-option-of-a-write", save, {}, "no option is given", CATALOG),
    case("no-topic-of-a-write", save, SERVER, "where to write is not given", CATALOG),
    case(
        "options-of-a-new-catalog-table",
        load,
        {"option.nameServer": "h:1", "option.topic": "T", "provider": "rocketmq"},
        "format rocketmq has no catalog tables",
        CATALOG,
    ),
    case("properties-of-a-catalog-table", load, BOTH | {"owner": "me"}, "no catalog tables", CATALOG),
    case("no-name-server", load, TOPIC, "option 'nameServer' is required, as host:port"),
    wrong("empty-name-server", load, "nameServer", " ", ": it is empty", base=TOPIC),
    wrong("no-port", load, "nameServer", "h", "", "port", base=TOPIC),
    case("no-topic", load, SERVER, "neither option 'topic' nor 'topics'", "option('topic', 'Orders')"),
    case("topic-and-topics", load, BOTH | {"topics": "U"}, "both 'topic' and 'topics' are given; give one"),
    case(
        "pattern-and-assign",
        load,
        SERVER | {"topicPattern": "U", "assign": '{"T":{"a":[0]}}'},
        "both 'topicPattern' and 'assign'",
    ),
    wrong("empty-topic", load, "topic", " ", ": it is empty", base=SERVER),
    wrong("empty-name-in-a-list", load, "topics", "a,,b", ": it is empty", base=SERVER),
    wrong("name-twice", load, "topics", "a,a", ": a name is given twice", base=SERVER),
    wrong("bad-pattern", load, "topicPattern", "a(", ": no regular expression", "at position 1", base=SERVER),
    wrong("assign-no-json", load, "assign", "T", ": it is no JSON", "line 1 column 1", base=SERVER),
    case(
        "assign-no-list",
        load,
        SERVER | {"assign": '{"T":{"a":0}}'},
        "broker 'a' of topic 'T' is 0: want a list of queue ids",
    ),
    case("assign-twice", load, SERVER | {"assign": '{"T":{"a":[0,0]}}'}, "a queue id is given twice"),
    wrong("empty-tag", load, "tags", "a||", ": it is empty", "separated by ||"),
    case(
        "tags-and-sql",
        load,
        BOTH | {"tags": "a", "sql": "a > 5"},
        "options 'tags' and 'sql' exclude each other",
        "drop one",
    ),
    case(
        "json-position",
        load,
        BOTH | {"startingOffsets": '{"T":{"a" 1}}'},
        "option 'startingOffsets' = ",
        "at line 1 column 11",
    ),
    wrong("group-unnamed", load, "startingOffsets", "group", " needs option 'group'"),
    wrong("end-group-unnamed", load, "endingOffsets", "group", " needs option 'group'"),
    wrong("no-fallback", load, "groupOffsetFallback", "none", "", "earliest, latest or error"),
    wrong("empty-read-group", load, "readGroup", " ", ": it is empty"),
    misplaced("read-group-of-a-write", save, "readGroup", "g", "reads", "writing"),
    wrong("no-such-treatment-of-corrupt-bodies", load, "corruptBody", "skip", "", "fail, raw or null"),
    wrong(
        "no-timestamp",
        load,
        "startingTimestamp",
        "yesterday",
        ": neither milliseconds since 1970 nor a time",
        "as 2026-01-31T10:00:00Z",
    ),
    case("negative-timestamp", load, BOTH | {"startingTimestamp": "-1"}, "want 0 or more, got -1"),
    case(
        "future",
        load,
        BOTH | {"startingTimestamp": TOMORROW},
        f"option 'startingTimestamp': {TOMORROW} is in the future",
        "of a time that has been",
    ),
    case(
        "future-of-a-queue",
        load,
        BOTH | {"startingOffsetsByTimestamp": json.dumps({"T": {"a": {"0": int(TOMORROW)}}})},
        f"{TOMORROW} is in the future",
    ),
    case(
        "timestamps-no-object",
        load,
        BOTH | {"startingOffsetsByTimestamp": "5"},
        "the whole is 5: want an object of topics",
    ),
    case(
        "no-strategy",
        load,
        BOTH | {"startingOffsetsByTimestampStrategy": "earliest"},
        "= 'earliest': it is none of them; want error or latest",
    ),
    wrong("count-of-nothing", load, "minPartitions", "0", ": want 1 or more"),
    wrong("no-number", load, "maxRecordsPerPartition", "many"),
    wrong("no-flag", load, "includeProperties", "yes", ": want true or false"),
    case("half-secret", load, BOTH | {"secretKey": "hunter2"}, "access_key and secret_key go together"),
    case("empty-secret", load, BOTH | {"secretKey": " "}, "option 'secretKey' = ***: it is empty"),
    case(
        "name-server-twice",
        load,
        BOTH | {"rocketmq.nameServer": "h:2"},
        "'nameServer' and 'rocketmq.nameserver'",
        "are the same: give one",
    ),
    case("unknown-setting", load, BOTH | {"rocketmq.requestTimeou": "1"}, "did you mean 'request_timeout'?"),
    misplaced("write-option", load, "sendTimeoutMs", "1", "writes", "reading"),
    case(
        "counts-differ",
        load,
        READERS | {"readerIds": "a@1"},
        "option 'readers' = 2, but 'readerIds' names 1: drop 'readers'",
    ),
    case(
        "readers-and-splits", load, READERS | {"minPartitions": "3"}, "option 'minPartitions' splits queues"
    ),
    case(
        "allocator-alone",
        load,
        BOTH | {"allocator": "AVG"},
        "option 'allocator' needs 'readers', 'readerIds' or 'asMember'",
    ),
    wrong("no-such-allocator", load, "allocator", "AVERAGE", "", "unknown allocation strategy", base=READERS),
    case(
        "no-module",
        load,
        READERS | {"allocator": "no.module:Class"},
        "strategy 'no.module:Class'",
        "Set RMQTOOLS_SPARK_PLUG_INS=no.module before Spark starts",
    ),
    wrong("no-strategy-at-all", load, "allocator", "json:loads", base=READERS),
    wrong("setting-missing", load, "allocator", "PINNED_BY_IP", "", "'ips'", base=READERS),
    case(
        "setting-unknown",
        load,
        READERS | {"allocator.colour": "x"},
        "option 'allocator' = 'AVG'",
        "option of strategy AVG 'colour'",
    ),
    wrong(
        "readers-by-live-pins",
        load,
        "allocator",
        "PINS",
        " follows the pins of a live group",
        "pin readers by 'allocator' = 'PINNED_BY_IP' and 'allocator.ips'",
        base=READERS,
    ),
    case(
        "setting-wrong",
        load,
        READERS | {"allocator": "PINNED_BY_IP", "allocator.ips": "moon"},
        "ip 'moon'",
        "want e.g. 10.0.0.1",
    ),
    case(
        "member-and-readers",
        load,
        READERS | {"asMember": "a@1", "group": "g"},
        "'asMember' and 'readers' exclude each other",
    ),
    case("member-of-nothing", load, BOTH | {"asMember": "a@1"}, "option 'asMember' needs option 'group'"),
    wrong("start-latest", plan, "startingOffsets", "latest", "", "reads nothing; start at earliest"),
    case(
        "start-latest-in-json",
        plan,
        BOTH | {"startingOffsets": '{"T":{"a":{"0":-1}}}'},
        "option 'startingOffsets' = -1 (latest)",
        "reads nothing",
    ),
    wrong("end-earliest", plan, "endingOffsets", "earliest", "", "reads nothing; end at latest"),
    case(
        "end-earliest-in-json",
        plan,
        BOTH | {"endingOffsets": '{"T":{"a":{"0":-2}}}'},
        "option 'endingOffsets' = -2 (earliest)",
    ),
    case("write-without-name-server", save, TOPIC, "option 'nameServer' is required"),
    misplaced("batch-option-at-a-write", save, "endingOffsets", "latest", "reads", "writing"),
    misplaced("read-option-at-a-write", save, "readers", "2", "reads", "writing"),
    wrong("no-bytes", save, "batchBytes", "0", ": want 1 or more"),
    case(
        "setting-twice",
        save,
        BOTH | {"sendTimeoutMs": "1", "rocketmq.send_timeout": "2"},
        "'sendTimeoutMs' and 'rocketmq.send",
        "are the same",
    ),
    case(
        "time-without-zone",
        load,
        BOTH | {"startingTimestamp": "2024-01-01"},
        "option 'startingTimestamp': 2024-01-01T00:00:00 has no time zone",
        "set option 'timeZone'",
    ),
    case(
        "no-time-of-a-queue",
        load,
        BOTH | {"startingOffsetsByTimestamp": '{"T":{"a":{"0":"noon"}}}'},
        'time "noon" of T/a/0: neither milliseconds since 1970',
    ),
    wrong(
        "no-time-zone", load, "timeZone", "Europe/Atlantis", ": there is no such time zone; want a time zone"
    ),
    case(
        "default-that-is-an-offset",
        load,
        BOTH | {"startingOffsets": '{"T":{"a":{"0":1,"*":7}}}'},
        "offset 7 of T/a/*: want one of -2, -1",
    ),
    case(
        "default-time",
        load,
        BOTH | {"startingOffsetsByTimestamp": '{"T":{"*":7}}'},
        "broker '*' is 7: want an object of queue ids",
    ),
    case(
        "stamp-id-without-stamps",
        save,
        BOTH | {"stampId": "run-7"},
        "option 'stampId' is for stamps: set option 'stamp' to true",
    ),
    case(
        "stamp-id-no-text",
        save,
        BOTH | {"stamp": "true", "stampId": "a\nb"},
        "option 'stampId' = 'a\\nb': it has control characters",
    ),
    wrong("no-length-of-time", load, "planningTimeout", "soon", ": it is no time", "500ms, 30s"),
    case(
        "keep-the-queue-of-rows-that-were-not-read",
        save,
        BOTH | {"keepQueue": "true"},
        "option 'keepQueue' is for rows that were read",
        "leave it out",
    ),
    wrong("no-keep", save, "keepQueue", "1", ": want true or false"),
    wrong("no-flag-of-topics", save, "createTopic", "no", ": want true or false"),
    wrong("no-flag-of-waiting", stream, "mustExist", "never", ": want true or false"),
    misplaced("waiting-in-a-batch", plan, "mustExist", "false", "streaming reads", "reading a batch"),
    wrong(
        "no-end-of-a-stream", stream, "endingOffsets", "soon", ": neither earliest, latest, group nor JSON"
    ),
    case(
        "end-of-a-stream-without-zone",
        stream,
        BOTH | {"endingTimestamp": "2026-01-01"},
        "option 'endingTimestamp': 2026-01-01T00:00:00 has no time zone",
    ),
    wrong(
        "no-such-column",
        load,
        "columns",
        "body,bodi",
        ": there is no column 'bodi' (did you mean 'body'?)",
        "want column names separated by commas",
    ),
    case(
        "column-of-kafka",
        load,
        BOTH | {"columns": "key,value"},
        "there is no column 'key' (did you mean 'keys'?)",
    ),
    wrong("column-twice", load, "columns", "body,body", ": a name is given twice"),
    case(
        "columns-and-properties",
        load,
        BOTH | {"columns": "body", "includeProperties": "false"},
        "options 'columns' and 'includeProperties' exclude each other: name it in 'columns'",
    ),
    wrong("empty-key", plan, "messageKeys", "a,,b", ": it is empty; want keys separated by commas"),
    wrong("id-twice", plan, "messageIds", "a,a", ": a name is given twice"),
    case(
        "key-and-offsets",
        plan,
        BOTH | {"messageKeys": "a", "startingOffsets": "earliest"},
        "options 'messageKeys' and 'startingOffsets' exclude each other",
        "or read the topic without 'messageKeys' and filter",
    ),
    case(
        "id-and-partitions",
        plan,
        BOTH | {"messageIds": "a", "minPartitions": "3"},
        "options 'messageIds' and 'minPartitions' exclude each other",
    ),
    misplaced("key-of-a-stream", stream, "messageKeys", "a", "batch reads", "reading a stream"),
    misplaced("id-of-a-write", save, "messageIds", "a", "batch reads", "writing"),
    wrong(
        "no-way-with-bad-rows",
        save,
        "onBadRow",
        "drop",
        ": it is none of them",
        "want fail, skip or topic:NAME",
    ),
    wrong(
        "no-topic-for-bad-rows",
        save,
        "onBadRow",
        "topic:a b",
        "",
        "or the topic's name has a character outside",
    ),
    wrong(
        "bad-rows-into-the-topic-itself",
        save,
        "onBadRow",
        "topic:T",
        ": rows are written to this topic; name another one",
    ),
    misplaced("bad-rows-of-a-read", load, "onBadRow", "skip", "writes", "reading"),
    wrong(
        "stream-ending-at-its-start",
        stream,
        "endingOffsets",
        "earliest",
        ": such a stream reads nothing; end at latest or at offsets",
    ),
]


@pytest.mark.parametrize(("when", "options", "says"), CASES)
def test_wrong_options_are_refused_by_name_value_and_remedy(when, options, says):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the text is compared below
        when(RocketMQDataSource({name.lower(): text for name, text in options.items()}))

    text = str(refusal.value)
    assert [part for part in says if part not in text] == [], text
    assert "hunter2" not in text


def test_a_schema_that_is_not_ours_is_refused_at_the_first_plan():
    other = type(READ_SCHEMA)().add("text", "string")

    with pytest.raises(
        ValueError, match=r"column 'text', which format rocketmq does not read.*or drop \.schema"
    ):
        RocketMQDataSource({"nameserver": "h:1", "topic": "T"}).reader(other)
