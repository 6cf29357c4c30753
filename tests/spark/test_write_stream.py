"""Streaming writes: modes, restarts, stamps, connections that outlive micro-batches."""

import logging
from collections import Counter

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.functions import udf
from pyspark.sql.types import StructType

from spark_connector import drop_duplicates
from spark_connector.write.stamps import HASH, STAMP
from tests.support.patience import PATIENCE
from tests.support.reading import await_stored


@pytest.fixture
def written(admin, read):
    """``written(topic, 3)``: what has been written to a topic, as soon as there are so many."""

    def load(topic: str, count: int):
        await_stored(admin, topic, count)
        return read(topic=topic)

    return load


def texts(frame) -> Counter[str]:
    return Counter(bytes(row.body).decode() for row in frame.collect())


def test_every_micro_batch_is_appended(make_topic, lines, write_stream, written):
    topic = make_topic()
    for number in range(3):
        lines(*(f"{number}-{row}" for row in range(100)))

    query = write_stream(lines.frame.withColumnRenamed("value", "body"), topic=topic)

    assert texts(written(topic, 300)) == Counter(f"{n}-{row}" for n in range(3) for row in range(100))
    assert len([progress for progress in query.recentProgress if progress.numInputRows]) == 3


def test_a_restart_goes_on_where_it_stopped(make_topic, lines, write_stream, written):
    topic = make_topic()
    frame = lines.frame.withColumnRenamed("value", "body")
    lines("a", "b")
    write_stream(frame, topic=topic)
    lines("c")

    write_stream(frame, topic=topic)

    assert texts(written(topic, 3)) == Counter("abc")


def test_mode_complete_appends_the_whole_result(make_topic, lines, write_stream, written):
    topic = make_topic()
    lines("a", "b")
    lines("a")
    counted = lines.frame.groupBy("value").count().selectExpr("concat(value, count) AS body")

    write_stream(counted, topic=topic, mode="complete")

    assert texts(written(topic, 4)) == Counter(["a1", "b1", "a2", "b1"])


@pytest.fixture
def batches_of_fifty(spark):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "50")
    yield
    spark.conf.set(name, before)


@pytest.mark.parametrize("deterministic", [True, False], ids=["deterministic", "not-deterministic"])
def test_a_batch_written_again_has_duplicates_and_by_stamps_they_go(
    make_topic, lines, write_stream, written, tmp_path, batches_of_fifty, deterministic
):
    topic, flag, rows = make_topic(), tmp_path / "flag", [f"row-{number}" for number in range(200)]
    lines(*rows)

    @udf("string", useArrow=False)
    def to(value):  # the 101st row has no topic at first
        return topic if flag.exists() or int(value[4:]) < 100 else None

    @udf("string", useArrow=False)
    def body(value):
        return value if deterministic or not flag.exists() else f"row-{199 - int(value[4:])}"

    frame = lines.frame.coalesce(1).select(to("value").alias("topic"), body("value").alias("body"))
    with pytest.raises(StreamingQueryException, match="row 100: topic is null"):
        write_stream(frame, stamp="true")
    flag.touch()

    write_stream(frame, stamp="true")

    stored = written(topic, 300)
    kept = texts(drop_duplicates(stored))
    assert sum(texts(stored).values()) == 300
    assert set(kept) == set(rows)
    assert sum(kept.values()) == (200 if deterministic else 300)


def test_stamps_say_query_batch_partition_and_row(make_topic, lines, write_stream, written):
    topic = make_topic()
    lines("a", "b")
    lines("b")

    query = write_stream(
        lines.frame.coalesce(1).withColumnRenamed("value", "body"), topic=topic, stamp="true"
    )

    rows = {
        (row.properties[STAMP], bytes(row.body), row.properties[HASH]) for row in written(topic, 3).collect()
    }
    hash_of = {body: hash_ for _, body, hash_ in rows}
    assert {stamp for stamp, _, _ in rows} == {f"{query.id}/{place}" for place in ("0/0/0", "0/0/1", "1/0/0")}
    assert {len(hash_) for _, _, hash_ in rows} == {32}
    assert len(hash_of) == len(set(hash_of.values())) == 2


@pytest.mark.slow  # the state is Spark's
def test_a_stream_of_what_was_stored_drops_duplicates_with_bounded_state(
    make_topic, write, save, read, stream, spark, tmp_path
):
    topic = make_topic()
    write([("a",), ("b",), ("a",)], "body string", topic=topic, stamp="true")
    write([("unstamped",), ("unstamped",)], "body string", topic=topic)
    stored = read(topic=topic).filter("array_contains(map_keys(properties), 'SPARK_STAMP')")
    again = stored.selectExpr("body", "map_filter(properties, (k, v) -> k like 'SPARK%') AS properties")
    save(again, topic=topic)
    query = (
        drop_duplicates(stream(topic=topic, startingOffsets="earliest").load(), within="10 minutes")
        .writeStream.format("parquet")
        .options(path=str(tmp_path / "out"), checkpointLocation=str(tmp_path / "dedup"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE)

    found = texts(spark.read.parquet(str(tmp_path / "out")))
    assert texts(read(topic=topic)) == {"a": 4, "b": 2, "unstamped": 2}
    assert found == {"a": 2, "b": 1, "unstamped": 2}
    assert "__place" not in spark.read.parquet(str(tmp_path / "out")).columns


def test_commit_and_abort_log_the_batch(caplog):
    from rmqtools.arrow import SendReport
    from spark_connector.write.stream_writer import RocketMQStreamWriter
    from spark_connector.write.write_task import TaskReport
    from tests.support.spark_options import write_of

    writer = RocketMQStreamWriter(write_of(), StructType([]))
    with caplog.at_level(logging.INFO, "spark_connector.write.stream_writer"):
        writer.commit([TaskReport(SendReport(acked=3, by_broker={"a": 3}))], 7)
        writer.abort([TaskReport(SendReport(acked=1)), None], 8)

    assert [message.split()[0:2] for message in caplog.messages] == [
        ["write_committed", "batch=7"],
        ["write_aborted", "batch=8"],
    ]
    assert "acked=3 retried=0 not_replicated=0 unknown=0 failed=0 bytes=0 by_broker={'a': 3}" in caplog.text
