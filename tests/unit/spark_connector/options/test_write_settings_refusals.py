"""Errors of a write's options name option or column, value and remedy, before any task runs."""

import pickle

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    VariantType,
)

from rmqtools.errors import ConfigError
from rmqtools.select import (
    SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom,
    SelectMessageQueueByRandom,
)
from spark_connector.options.option_table import parse_options
from spark_connector.options.write_settings import WriteOptions, write_options
from spark_connector.write.write_schema import check_write_schema

SERVER = {"nameServer": "h:1"}


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch):
    for name in ("NAMESRV_ADDR", "ROCKETMQ_ACCESS_KEY", "ROCKETMQ_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RMQTOOLS_SPARK_PLUG_INS", f"{__name__},no_such")


def options(**given: str) -> WriteOptions:
    return write_options(parse_options(SERVER | given))


class Own:
    """A user's selector."""

    def __init__(self, shard_count: str, name: str = "x") -> None:
        self.shard_count = shard_count

    def __call__(self, queues, message, arg):
        return queues[0]


def not_callable() -> int:
    return 1


class NotCallable:
    """A class whose instances cannot be called."""


OWN = f"{__name__}:Own"


def test_latency_fault_avoidance_is_on_unless_switched_off():
    assert options().producer.send_latency_fault_enable
    assert not options(**{"rocketmq.sendLatencyFaultEnable": "false"}).producer.send_latency_fault_enable
    assert not options(**{"rocketmq.send_latency_fault_enable": "no"}).producer.send_latency_fault_enable


def test_queues_come_in_turn_unless_told_otherwise():
    assert options().make_selector is None
    assert options(queueSelector="Round-Robin").make_selector is None


@pytest.mark.parametrize(
    ("given", "selector"),
    [
        ({"queueSelector": "hash"}, SelectMessageQueueByHash()),
        ({"queueSelector": "Random"}, SelectMessageQueueByRandom()),
        (
            {"queueSelector": "machine-room", "queueSelector.room": "B1"},
            SelectMessageQueueByMachineRoom("B1"),
        ),
    ],
    ids=["hash", "random", "machine-room"],
)
def test_selectors_have_a_name(given, selector):
    make = options(**given).make_selector

    assert make is not None
    assert make() == selector


def test_a_selector_of_ones_own_is_made_in_every_task_of_its_settings():
    given = options(queueSelector=OWN, **{"queueselector.shardcount": "8"})

    make = pickle.loads(pickle.dumps(given)).make_selector

    assert make().shard_count == "8"
    assert make() is not make()


def test_a_process_that_lists_no_module_makes_no_selector(monkeypatch):
    make = options(queueSelector=OWN, **{"queueselector.shardcount": "8"}).make_selector
    assert make is not None
    monkeypatch.delenv("RMQTOOLS_SPARK_PLUG_INS")

    with pytest.raises(ConfigError, match=r"Set RMQTOOLS_SPARK_PLUG_INS=.* before Spark starts"):
        make()


def test_stamps_are_off_unless_asked_for():
    assert (options().stamp, options().id_column) == (False, None)
    assert (options(stamp="TRUE", idColumn="id").stamp, options(stamp="true", idColumn="id").id_column) == (
        True,
        "id",
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"queueSelectors": "hash"}, "did you mean 'queueSelector'?", id="unknown-option"),
        pytest.param({"startingOffsets": "earliest"}, "leave it out when writing", id="read-option"),
        pytest.param({"topics": "a,b"}, "leave it out when writing", id="topics"),
        pytest.param({"queueSelector": "hashed"}, "did you mean 'hash'?", id="unknown-selector"),
        pytest.param({"queueSelector": "machine-room"}, "missing a required argument: 'room'", id="no-room"),
        pytest.param(
            {"queueSelector": "machine-room", "queueSelector.rom": "b"},
            "did you mean 'queueSelector.room'?",
            id="unknown-setting",
        ),
        pytest.param({"queueSelector.room": "b"}, "round-robin has no settings", id="setting-of-none"),
        pytest.param({"queueSelector": "hash", "queueSelector.room": "b"}, "unknown option", id="no-setting"),
        pytest.param({"queueSelector": "no_such:Class"}, "No module named 'no_such'", id="no-module"),
        pytest.param({"queueSelector": f"{__name__}:No"}, "has no attribute 'No'", id="no-class"),
        pytest.param({"queueSelector": f"{__name__}:OWN"}, "is a str: want a class", id="no-callable"),
        pytest.param(
            {"queueSelector": f"{__name__}:not_callable"}, "is a function: want a class", id="function"
        ),
        pytest.param(
            {"queueSelector": f"{__name__}:NotCallable"}, "a method '__call__' of 3 arguments", id="no-call"
        ),
        pytest.param({"queueSelector": OWN}, "missing a required argument: 'shard_count'", id="own-half"),
        pytest.param({"stamp": "maybe"}, "option 'stamp' = 'maybe': want true or false", id="stamp"),
        pytest.param({"idColumn": "id"}, "set option 'stamp' to true", id="id-without-stamp"),
        pytest.param({"sendTimeoutMs": "0"}, "option 'sendTimeoutMs' = '0'", id="timeout"),
        pytest.param({"batchBytes": "many"}, "option 'batchBytes' = 'many'", id="batch-bytes"),
        pytest.param({"rocketmq.enableTrace": "true"}, "cannot be traced; drop it", id="trace"),
        pytest.param(
            {"rocketmq.compression": "rar"}, "want one of zlib, lz4, zstd, none", id="client-setting"
        ),
    ],
)
def test_options_of_writes_are_refused_by_name(given, says):
    with pytest.raises(ConfigError) as refusal:
        options(**given)

    assert says in str(refusal.value)


def schema(**kinds) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


BODY = {"body": StringType()}
TEXTS = ArrayType(StringType())
NAMED = schema(a=IntegerType())
HEADERS = ArrayType(schema(key=StringType(), value=BinaryType()))


@pytest.mark.parametrize(
    ("columns", "id_column", "says"),
    [
        pytest.param({"keys": StringType()}, None, "no column 'body'", id="no-body"),
        pytest.param({"body": LongType()}, None, "'body' is bigint: cast it to binary or string", id="body"),
        pytest.param({"body": NullType()}, None, "'body' is void: cast it to", id="null-body"),
        pytest.param(
            BODY | {"topic": NullType()}, None, "'topic' is void: cast it to string", id="null-topic"
        ),
        pytest.param(BODY | {"queueId": IntegerType()}, None, "give both or neither", id="half-a-queue"),
        pytest.param(
            BODY | {"queueId": LongType(), "brokerName": StringType()},
            None,
            "column 'queueId' is bigint: cast it to int",
            id="queue-id",
        ),
        pytest.param(BODY | {"delayLevel": StringType()}, None, "cast it to int", id="delay-level"),
        pytest.param(
            BODY | {"deliverTimestamp": TimestampNTZType()}, None, "cast it to timestamp", id="deliver"
        ),
        pytest.param(BODY | {"shardingKey": BinaryType()}, None, "cast it to string", id="sharding-key"),
        pytest.param(
            BODY | {"sharding_key": StringType()}, None, "did you mean 'shardingKey'?", id="unknown"
        ),
        pytest.param(BODY | {"id": LongType()}, None, "column 'id' cannot be written", id="id-not-named"),
        pytest.param(BODY, "id", "option 'idColumn' = 'id': no such column", id="no-id"),
        pytest.param({"body": NAMED}, None, "struct<a:int>: write to_json(body) AS body", id="struct"),
        pytest.param({"body": TEXTS}, None, "array<string>: write to_json(body) AS body", id="array"),
        pytest.param({"body": MapType(StringType(), NAMED)}, None, "write to_json(body) AS body", id="map"),
        pytest.param({"body": VariantType()}, None, "variant: write to_json(body) AS body", id="variant"),
        pytest.param(BODY | {"keys": TEXTS}, None, "write array_join(keys, ' ') AS keys", id="keys"),
        pytest.param(
            BODY | {"keys": NAMED}, None, "want string; take one value of it", id="keys-of-a-struct"
        ),
        pytest.param(BODY | {"tags": TEXTS}, None, "want string; take one value of it", id="tags"),
        pytest.param(
            BODY | {"properties": NAMED},
            None,
            "write from_json(to_json(properties), 'map<string,string>') AS properties",
            id="properties-of-a-struct",
        ),
        pytest.param(
            BODY | {"properties": HEADERS},
            None,
            "write map_from_entries(transform(properties, h -> struct(h.key, CAST(h.value AS STRING))))",
            id="headers-as-properties",
        ),
        pytest.param(
            {"value": BinaryType()}, None, "'value' cannot be written (did you mean 'body'?)", id="value"
        ),
        pytest.param(BODY | {"key": BinaryType()}, None, "(did you mean 'keys'?)", id="key"),
        pytest.param(BODY | {"headers": HEADERS}, None, "(did you mean 'properties'?)", id="headers"),
        pytest.param(BODY | {"partition": IntegerType()}, None, "(did you mean 'queueId'?)", id="partition"),
        pytest.param(
            BODY | {"timestamp": LongType()}, None, "brokers set the time of storing", id="timestamp"
        ),
        pytest.param(
            BODY | {"offset": LongType()}, None, "brokers give each message its offset", id="offset"
        ),
        pytest.param(
            BODY | {"id": ArrayType(LongType())}, "id", "want a column of one value", id="id-of-many-values"
        ),
    ],
)
def test_columns_of_writes_are_refused_by_name(columns, id_column, says):
    with pytest.raises(ConfigError) as refusal:
        check_write_schema(schema(**columns), "T", id_column)

    assert says in str(refusal.value)


def test_a_column_that_is_there_twice_is_refused():
    twice = StructType([*schema(**BODY).fields, *schema(keys=StringType(), **BODY).fields])

    with pytest.raises(ConfigError, match="column 'body' is there 2 times: drop or rename one"):
        check_write_schema(twice, "T")


@pytest.mark.parametrize("id_column", ["id", "body"])
def test_an_id_column_may_be_one_that_is_not_sent(id_column):
    check_write_schema(schema(**BODY, id=LongType()) if id_column == "id" else schema(**BODY), "T", id_column)
