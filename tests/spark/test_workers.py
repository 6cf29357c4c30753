"""Spark's Python workers: what they collect as garbage, and their events as rows of SQL."""

import gc

import pytest

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.testing.fake import FakeCluster
from tests.docs.blocks import blocks_of

(RECIPE,) = (block.text for block in blocks_of("spark-recipes.md") if "python_worker_logs" in block.text)


def settle_and_look(_: int) -> int:
    from spark_connector.worker.gc_freeze import freeze_once

    freeze_once()
    return gc.get_freeze_count()


@pytest.mark.spark  # and no broker
def test_what_is_loaded_at_the_end_of_a_task_is_not_collected_over_and_over(spark):
    """PySpark collects garbage after each task: 60 ms for all that is loaded, on a processor others need."""
    frozen = spark.sparkContext.parallelize([1], 1).map(settle_and_look).collect()

    assert frozen[0] > 10_000


@pytest.fixture
def warnings(spark):
    """``warnings("bad_row")``: logger and text of each warning with that event, by the page's recipe.

    Spark has worker logging from PySpark 4.1 on.
    """
    names = {"spark": spark}
    exec(RECIPE, names)

    def found(event):
        chosen = names["events"].where(f"level = 'WARNING' AND msg LIKE '{event} %'")
        return [tuple(row) for row in chosen.select("logger", "msg").collect()]

    yield found
    spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")


def test_rows_that_needed_another_attempt_are_readable_in_sql(warnings, write):
    with FakeCluster() as cluster:
        cluster.create_topic("Busy", queues=2)
        cluster.fault(code=RequestCode.SEND_BATCH_MESSAGE, answer=ResponseCode.SYSTEM_BUSY)
        rows = [(b"%d" % number,) for number in range(10)]

        write(rows, "body binary", topic="Busy", nameServer=cluster.name_server)

    ((logger, text),) = warnings("rows_retried")
    assert logger == "spark_connector.write.write_task"
    assert "partition=0" in text
    assert "acked=10" in text
    assert "retried=0" not in text
