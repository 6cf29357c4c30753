"""The collector's settings of a process that is no worker of PySpark."""

import gc

from spark_connector.worker.gc_freeze import freeze_once


def test_nothing_changes_where_no_worker_of_pyspark_runs():
    before = gc.get_freeze_count()  # not 0 in Python 3.12

    freeze_once()

    assert gc.get_freeze_count() == before
