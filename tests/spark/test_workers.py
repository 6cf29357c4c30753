"""What holds in Spark's Python workers."""

import gc

import pytest

pytestmark = pytest.mark.spark


def settle_and_look(_: int) -> int:
    from spark_connector.worker.gc_freeze import freeze_once

    freeze_once()
    return gc.get_freeze_count()


def test_what_is_loaded_at_the_end_of_a_task_is_not_collected_over_and_over(spark):
    """PySpark collects garbage after each task: 60 ms for all that is loaded, on a processor others need."""
    frozen = spark.sparkContext.parallelize([1], 1).map(settle_and_look).collect()

    assert frozen[0] > 10_000
