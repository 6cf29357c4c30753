"""The collector's settings of a process that is no worker of PySpark."""

import gc

from spark_connector.collector import settle


def test_nothing_changes_where_no_worker_of_pyspark_runs():
    settle()

    assert gc.get_freeze_count() == 0
