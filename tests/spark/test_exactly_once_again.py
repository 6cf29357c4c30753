"""Exactly-once writes that run again with other rows, or in a second driver: nothing twice or dropped."""

import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark import inheritable_thread_target
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException

import spark_connector
from tests.spark.streams import run_to_end
from tests.support.patience import PATIENCE, PATIENT_WRITE


@pytest.fixture
def query(spark, local_cluster, make_topic, read_rows, tmp_path):
    return Query(spark, local_cluster.name_server, make_topic(queues=1), read_rows, tmp_path)


class Query:
    """A stream of files, each a micro-batch unless a run reads several at a time."""

    def __init__(self, spark, name_server, topic, read_rows, folder):
        self.topic, self.checkpoint, self.lines = topic, folder / "checkpoint", folder / "lines"
        self.options = {"nameServer": name_server, "topic": topic, "delivery": "exactlyOnce"} | PATIENT_WRITE
        self._spark, self._read_rows = spark, read_rows
        self.lines.mkdir()

    def add(self, number, rows):
        file = self.lines / f"{number}.txt"
        file.write_text("\n".join(map(str, rows)))
        os.utime(file, (number, number))  # the order in which Spark reads them

    def run(self, checkpoint=None, *, files=1, body="value"):
        """Run until all files are read, again only where Spark did not reach its own worker in time."""
        frame = self._spark.readStream.option("maxFilesPerTrigger", files).text(str(self.lines))
        writer = frame.selectExpr(f"{body} AS body").writeStream.format("rocketmq").options(**self.options)
        writer = writer.option("checkpointLocation", str(checkpoint or self.checkpoint))
        return run_to_end(lambda: writer.trigger(availableNow=True).start())

    def numbers(self):
        return Counter(int(bytes(row.body)) for row in self._read_rows(topic=self.topic))


def forget(checkpoint, batch, *kinds):
    """Remove the files of a micro-batch from a checkpoint."""
    for kind in kinds:
        for name in (str(batch), f".{batch}.crc"):
            (checkpoint / kind / name).unlink(missing_ok=True)


PLAN = ("offsets", "commits", "sources/0")


def test_a_driver_that_goes_on_after_another_one_has_taken_its_place_stores_nothing_again(query, tmp_path):
    for number in range(3):
        query.add(number, range(number * 50, number * 50 + 50))
    query.run()
    first = tmp_path / "first"  # the checkpoint of a driver that was stopped in micro-batch 1
    shutil.copytree(query.checkpoint, first)
    forget(first, 1, "commits")
    forget(first, 2, *PLAN)

    query.run(first)

    assert query.numbers() == Counter(range(150))


def test_a_micro_batch_that_is_planned_anew_with_more_rows_is_refused(query):
    for number in range(2):
        query.add(number, range(number * 50, number * 50 + 50))
    query.run()
    forget(query.checkpoint, 1, *PLAN)
    query.add(2, range(100, 150))

    with pytest.raises(StreamingQueryException) as caught:
        query.run(files=10)

    assert "commit 1 of writer" in str(caught.value)
    assert f"has 100 rows now, and 50 other rows of it are stored in topic '{query.topic}'" in str(
        caught.value
    )
    assert query.numbers() == Counter(range(100))


def test_an_older_copy_of_a_checkpoint_that_plans_other_rows_is_refused(query, tmp_path):
    query.add(0, range(50))
    query.run()
    shutil.copytree(query.checkpoint, tmp_path / "older")
    for number in (1, 2):
        query.add(number, range(number * 50, number * 50 + 50))
        query.run()

    with pytest.raises(
        StreamingQueryException, match="commits up to 2 are decided, so a checkpoint was restored"
    ):
        query.run(tmp_path / "older", files=10)

    assert query.numbers() == Counter(range(150))


def test_a_job_with_new_values_at_each_run_keeps_the_first_if_the_option_says_so(query):
    query.options["onChangedRows"] = "keepFirst"
    query.add(0, range(50))
    query.run(body="CAST(CAST(1000000 * rand() AS INT) AS STRING)")
    stored = query.numbers()
    forget(query.checkpoint, 0, "commits")

    query.run(body="CAST(CAST(1000000 * rand() AS INT) AS STRING)")

    assert query.numbers() == stored
    assert stored.total() == 50


def in_threads(spark, query, start, **options):
    """Write each micro-batch in a thread of ``foreachBatch``; return the errors."""
    errors = []
    given = {**query.options, "stampId": "orders", **options}

    def write(frame, number):
        def save():
            frame.sparkSession.createDataFrame([(1,)], "a int")  # makes its session that of the thread
            rows = frame.selectExpr("'same' AS body")
            rows.write.format("rocketmq").options(**given).mode("append").save()

        with ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(start(frame.sparkSession, save)).result()
            except PythonException as error:
                errors.append(str(error))

    frame = spark.readStream.option("maxFilesPerTrigger", 1).text(str(query.lines))
    stream = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(query.checkpoint))
    assert stream.trigger(availableNow=True).start().awaitTermination(PATIENCE)
    return errors


@pytest.mark.parametrize(
    "options", [{}, {"delivery": "atLeastOnce", "stamp": "true"}], ids=["exact", "stamp"]
)
def test_a_write_in_a_thread_of_foreach_batch_is_refused_unless_it_inherits_the_micro_batch(
    spark, query, read_rows, options
):
    spark_connector.register(spark)
    for number in range(2):
        query.add(number, range(3))

    errors = in_threads(spark, query, lambda session, save: save, **options)
    shutil.rmtree(query.checkpoint)
    nothing = read_rows(topic=query.topic)
    assert (
        in_threads(spark, query, lambda session, save: inheritable_thread_target(session)(save), **options)
        == []
    )

    assert ["threads of foreachBatch do not inherit" in error for error in errors] == [True, True]
    assert (len(nothing), len(read_rows(topic=query.topic))) == (0, 6)


def test_a_second_insert_with_one_id_is_refused_and_an_empty_one_before_does_no_harm(spark, query):
    texts = ", ".join(f"{name} '{text}'" for name, text in {**query.options, "stampId": "night"}.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW night (body STRING) USING rocketmq OPTIONS ({texts})")

    def insert(rows):
        spark.sql(f"INSERT INTO night SELECT CAST(id AS STRING) FROM {rows}")

    insert("range(0)")
    insert("range(10)")
    with pytest.raises(AnalysisException, match="has 20 rows now, and 10 other rows of it are stored"):
        insert("range(10, 30)")

    assert query.numbers() == Counter(range(10))
