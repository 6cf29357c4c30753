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
def _listed(monkeypatch):
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
    ],
)
def test_selectors_of_ones_own_that_cannot_be_used_are_refused_by_name(given, says):
    with pytest.raises(ConfigError) as refusal:
        options(**given)

    assert says in str(refusal.value)


def schema(**kinds) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


BODY = {"body": StringType()}
TEXTS = ArrayType(StringType())
NAMED = schema(a=IntegerType())
HEADERS = ArrayType(schema(key=StringType(), value=BinaryType()))


def refused(id, says, /, id_column=None, **columns):
    """Columns beside a body of text, unless they give another one or none."""
    kinds = {name: kind for name, kind in ({"body": StringType()} | columns).items() if kind is not None}
    return pytest.param(schema(**kinds), id_column, says, id=id)


@pytest.mark.parametrize(
    ("columns", "id_column", "says"),
    [
        refused("no-body", "no column 'body'", keys=StringType(), body=None),
        refused("body", "'body' is bigint: cast it to binary or string", body=LongType()),
        refused("null-body", "'body' is void: cast it to", body=NullType()),
        refused(
            "properties", "cast it to map<string,string>", properties=MapType(StringType(), IntegerType())
        ),
        refused("null-topic", "'topic' is void: cast it to string", topic=NullType()),
        refused("half-a-queue", "give both or neither", queueId=IntegerType()),
        refused(
            "queue-id",
            "column 'queueId' is bigint: cast it to int",
            queueId=LongType(),
            brokerName=StringType(),
        ),
        refused("delay-level", "cast it to int", delayLevel=StringType()),
        refused("deliver", "cast it to timestamp", deliverTimestamp=TimestampNTZType()),
        refused("sharding-key", "cast it to string", shardingKey=BinaryType()),
        refused("unknown", "did you mean 'shardingKey'?", sharding_key=StringType()),
        refused("id-not-named", "column 'id' cannot be written", id=LongType()),
        refused("no-id", "option 'idColumn' = 'id': no such column", id_column="id"),
        refused("struct", "struct<a:int>: write to_json(body) AS body", body=NAMED),
        refused("array", "array<string>: write to_json(body) AS body", body=TEXTS),
        refused("map", "write to_json(body) AS body", body=MapType(StringType(), NAMED)),
        refused("variant", "variant: write to_json(body) AS body", body=VariantType()),
        refused("keys", "write array_join(keys, ' ') AS keys", keys=TEXTS),
        refused("keys-of-a-struct", "want string; take one value of it", keys=NAMED),
        refused("tags", "want string; take one value of it", tags=TEXTS),
        refused(
            "properties-of-a-struct",
            "write from_json(to_json(properties), 'map<string,string>') AS properties",
            properties=NAMED,
        ),
        refused(
            "headers-as-properties",
            "write map_from_entries(transform(properties, h -> struct(h.key, CAST(h.value AS STRING))))",
            properties=HEADERS,
        ),
        refused("value", "'value' cannot be written (did you mean 'body'?)", value=BinaryType(), body=None),
        refused("key", "(did you mean 'keys'?)", key=BinaryType()),
        refused("headers", "(did you mean 'properties'?)", headers=HEADERS),
        refused("partition", "(did you mean 'queueId'?)", partition=IntegerType()),
        refused("timestamp", "brokers set the time of storing", timestamp=LongType()),
        refused("offset", "brokers give each message its offset", offset=LongType()),
        refused("id-of-many-values", "want a column of one value", id_column="id", id=ArrayType(LongType())),
    ],
)
def test_columns_of_writes_are_refused_by_name(columns, id_column, says):
    with pytest.raises(ConfigError) as refusal:
        check_write_schema(columns, "T", id_column)

    assert says in str(refusal.value)


def test_a_column_that_is_there_twice_is_refused():
    twice = StructType([*schema(**BODY).fields, *schema(keys=StringType(), **BODY).fields])

    with pytest.raises(ConfigError, match="column 'body' is there 2 times: drop or rename one"):
        check_write_schema(twice, "T")


@pytest.mark.parametrize("id_column", ["id", "body"])
def test_an_id_column_may_be_one_that_is_not_sent(id_column):
    check_write_schema(schema(**BODY, id=LongType()) if id_column == "id" else schema(**BODY), "T", id_column)
