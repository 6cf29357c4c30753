"""Stamps that survive: foreachBatch that fails half-way, a batch job that is run again."""

from collections import Counter
from functools import partial

import pytest
from pyspark.errors import StreamingQueryException

from spark_connector import drop_duplicates
from tests.support.patience import PATIENCE

SCHEMA = "id int, body string"


def rows(count):
    return [(number, f"row-{number}") for number in range(count)]


def bodies(frame):
    return Counter(bytes(row.body).decode() for row in frame.select("body").collect())


@pytest.fixture
def save(save):
    return partial(save, stamp="true")


@pytest.fixture
def run(lines, tmp_path):
    """``run(write)``: all lines, by ``foreachBatch``; a second call is a restart."""

    def run(write):
        stream = lines.frame.withColumnRenamed("value", "body").writeStream.foreachBatch(write)
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert stream.trigger(availableNow=True).start().awaitTermination(PATIENCE)

    return run


def test_a_write_in_foreach_batch_that_is_run_again_is_dropped_once(make_topic, lines, save, read, run):
    topic, texts = make_topic(), [body for _, body in rows(300)]
    lines(*texts)
    failures: list[object] = []

    def write(frame, number):
        save(frame, topic=topic)
        if not failures:
            failures.append(number)
            raise RuntimeError("after the rows were sent")

    with pytest.raises(StreamingQueryException, match="after the rows were sent"):
        run(write)
    run(write)

    stored = read(topic=topic)
    assert stored.count() == 600
    assert bodies(drop_duplicates(stored)) == Counter(texts)


def test_two_writes_in_one_foreach_batch_with_an_id_each_both_stay(make_topic, lines, save, read, run):
    topic = make_topic()
    lines("same")

    def write(frame, number):
        for name in ("first", "second"):
            save(frame, topic=topic, stampId=name)

    run(write)

    assert bodies(drop_duplicates(read(topic=topic))) == {"same": 2}


def test_a_batch_job_run_again_with_its_id_is_dropped_once_however_it_was_partitioned(
    spark, make_topic, save, read
):
    topic = make_topic()
    frame = spark.createDataFrame(rows(300), SCHEMA)

    save(frame.repartition(4), topic=topic, stampId="2026-11-23", idColumn="id")
    save(frame.orderBy("id", ascending=False).coalesce(1), topic=topic, stampId="2026-11-23", idColumn="id")

    stored = read(topic=topic)
    assert stored.count() == 600
    assert bodies(drop_duplicates(stored)) == Counter(body for _, body in rows(300))


def test_a_deterministic_job_run_again_with_its_id_needs_no_id_column(spark, make_topic, save, read):
    topic = make_topic()
    frame = spark.createDataFrame([("same",)] * 20, "body string").coalesce(2)

    for run in ("monday", "monday", "tuesday"):
        save(frame, topic=topic, stampId=run)

    assert bodies(drop_duplicates(read(topic=topic))) == {"same": 40}


def test_without_an_id_a_job_run_again_is_another_write(spark, make_topic, save, read):
    topic = make_topic()
    frame = spark.createDataFrame(rows(5), SCHEMA)

    for _ in range(2):
        save(frame, topic=topic, idColumn="id")

    assert sum(bodies(drop_duplicates(read(topic=topic))).values()) == 10
