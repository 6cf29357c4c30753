"""What a user gets wrong is told by name, value and remedy: at load(), at save(), at the first action."""

import json

import pytest

from rmqtools import Perm

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def error_of(action) -> str:
    """The text a user would see."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with pytest.raises((PySparkException, Py4JError)) as error:
        action()
    return str(error.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param(
            {"topic": "T", "startingOffset": "earliest"}, "did you mean 'startingOffsets'?", id="unknown"
        ),
        pytest.param({"topic": "T", "startingOffsets": '{"T":'}, "at line 1 column 6", id="bad-json"),
        pytest.param(
            {"topic": "T", "secretKey": "hunter2"}, "access_key and secret_key go together", id="half-secret"
        ),
    ],
)
def test_load_refuses_what_cannot_be_read(read, options, says):
    """All that can be wrong is in tests/unit/spark_connector/options/test_option_errors.py."""
    text = error_of(lambda: read(**options))

    assert says in text
    assert "hunter2" not in text


def test_what_only_a_batch_refuses_shows_at_the_first_action(read):
    frame = read(topic="T", startingOffsets="latest")

    assert "option 'startingOffsets' = 'latest': such a batch reads nothing" in error_of(frame.count)


def test_load_without_a_name_server_asks_for_one(spark):
    text = error_of(lambda: spark.read.format("rocketmq").option("topic", "T").load())

    assert "option 'nameServer' is required" in text


@pytest.mark.parametrize(
    ("schema", "options", "says"),
    [
        pytest.param("body string", {"topik": "T"}, "did you mean 'topic'?", id="unknown-option"),
        pytest.param(
            "body string", {"topic": "T", "startingOffsets": "latest"}, "for reads only", id="read-option"
        ),
        pytest.param("body string", {}, "set option 'topic' or add a column 'topic'", id="no-topic"),
        pytest.param("tags string", {"topic": "T"}, "no column 'body'", id="no-body"),
        pytest.param("body string, tag string", {"topic": "T"}, "did you mean 'tags'?", id="unknown-column"),
        pytest.param(
            "body int", {"topic": "T"}, "column 'body' is int: cast it to binary or string", id="type"
        ),
    ],
)
def test_save_refuses_what_cannot_be_written(write, schema, options, says):
    assert says in error_of(lambda: write([], schema, **options))


def test_save_refuses_to_overwrite(write):
    assert "use .mode('append')" in error_of(
        lambda: write([("a",)], "body string", topic="T", mode="overwrite")
    )


def test_a_schema_given_by_the_user_is_refused(spark, local_cluster, make_topic):
    given = spark.read.format("rocketmq").schema("text string")
    options = {"nameServer": local_cluster.name_server, "topic": make_topic()}

    assert "the given schema has column 'text'" in error_of(lambda: given.options(**options).load().collect())


def test_a_topic_that_does_not_exist_is_named(read):
    text = error_of(lambda: read(topic="never-made").count())

    assert "TopicNotFoundError" in text
    assert "never-made" in text


def test_a_topic_that_may_not_be_read_is_named(read, make_topic):
    topic = make_topic(perm=Perm.WRITE)

    text = error_of(lambda: read(topic=topic).count())

    assert "PermissionDeniedError" in text
    assert topic in text


def test_a_name_server_that_is_not_there_is_named(read):
    assert "127.0.0.1:9" in error_of(
        lambda: read(nameServer="127.0.0.1:9", topic="T", planningTimeout="100ms").count()
    )


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        pytest.param({"broker-a": {"0": 0}}, "broker-b/0 is left out", id="queue-left-out"),
        pytest.param(
            {"broker-a": {"0": 0}, "broker-b": {"0": 0, "7": 0}}, "broker-b/7 does not exist", id="no-queue"
        ),
        pytest.param({"broker-a": {"0": 5}, "broker-b": {"0": 0}}, "offset 5 of", id="beyond-the-end"),
    ],
)
def test_offsets_that_do_not_fit_the_topic_are_named(read, make_topic, offsets, says):
    topic = make_topic(queues=1)

    text = error_of(lambda: read(topic=topic, startingOffsets=json.dumps({topic: offsets})).count())

    assert "option 'startingOffsets'" in text
    assert says in text


def test_a_start_after_the_end_is_named(read, write, make_topic):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    write([("a",), ("b",), ("c",)], "body string", topic=topic)
    bounds = [json.dumps({topic: {"broker-a": {"0": at}}}) for at in (2, 1)]

    text = error_of(lambda: read(topic=topic, startingOffsets=bounds[0], endingOffsets=bounds[1]).count())

    assert "set startingOffsets at or before endingOffsets" in text


@pytest.mark.parametrize(
    ("row", "says"),
    [
        pytest.param((None, None), "row 2: body is null", id="null-body"),
        pytest.param((b"", None), "row 2: body is empty", id="empty-body"),
        pytest.param((b"x" * 5_000_000, None), "row 2: body has 5000000 bytes", id="too-large"),
        pytest.param(
            (b"x", {"UNIQ_KEY": "1"}), "row 2: property 'UNIQ_KEY' is reserved", id="reserved-property"
        ),
        pytest.param((b"x", {"colour": ""}), "row 2: property 'colour' is empty", id="empty-property"),
    ],
)
def test_a_row_that_cannot_be_sent_fails_the_write_and_is_named(write, make_topic, row, says):
    topic = make_topic()
    rows = [(b"a", None), (b"b", None), row, (b"d", None)]

    text = error_of(lambda: write(rows, "body binary, properties map<string,string>", topic=topic))

    assert says in text


def test_writing_to_a_row_without_topic_names_the_row(write, make_topic):
    rows = [(make_topic(), "a"), (None, "b")]

    assert "row 1: topic is null" in error_of(lambda: write(rows, "topic string, body string"))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("readers '2', allocator 'subprocess:getoutput', 'allocator.cmd' '{}'", id="allocator"),
        pytest.param(
            "readers '2', allocator 'MACHINE_ROOM_NEARBY', 'allocator.resolver' 'subprocess:Popen'",
            id="resolver",
        ),
    ],
)
def test_sql_runs_no_program_whatever_it_sets_before(spark, tmp_path, options):
    file = tmp_path / "ran"
    settings = ("spark.executorEnv.", "spark.yarn.appMasterEnv.", "spark.sql.", "")
    for name in settings:
        spark.sql(f"SET {name}RMQTOOLS_SPARK_PLUG_INS=subprocess")
    view = f"nameServer '127.0.0.1:9', topic 'T', {options.format(f'touch {file}')}"

    text = error_of(lambda: spark.sql(f"CREATE TEMPORARY VIEW harmful USING rocketmq OPTIONS ({view})"))

    for name in settings:
        spark.conf.unset(f"{name}RMQTOOLS_SPARK_PLUG_INS")
    assert "Set RMQTOOLS_SPARK_PLUG_INS=tests.spark.plug_ins,subprocess before Spark starts" in text
    assert not file.exists()


def test_sql_writes_run_no_program(spark, tmp_path):
    file = tmp_path / "ran"
    options = {"nameServer": "127.0.0.1:9", "topic": "T", "queueSelector": "subprocess:getoutput"}
    frame = spark.sql("SELECT 'a' AS body").write.format("rocketmq").mode("append")

    text = error_of(lambda: frame.options(**options, **{"queueSelector.cmd": f"touch {file}"}).save())

    assert "Set RMQTOOLS_SPARK_PLUG_INS=tests.spark.plug_ins,subprocess before Spark starts" in text
    assert not file.exists()
