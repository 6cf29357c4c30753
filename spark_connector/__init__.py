"""Apache RocketMQ as a Spark data source: ``spark.read.format("rocketmq")``, ``df.write.format("rocketmq")``.

With the package installed, Spark needs no registration. If Spark cannot discover the source (``--py-files``,
Spark Connect, another broken ``pyspark_*`` package on the path), call :func:`register` once per session;
``python -m spark_connector.doctor`` prints the cause.

:func:`drop_duplicates` drops messages that a write with ``stamp`` stored twice. :func:`reader_ids` makes
client ids for the option ``readerIds``. :func:`lag` and :class:`LagHistory` measure how far streaming queries
are behind. :func:`exactly_once_status` returns the progress of a write with ``delivery=exactlyOnce``, and
:func:`give_up_batch` ends a batch of it that cannot be finished. :func:`stop_at_end` stops a query at its
ending offsets. :func:`refresh` makes a temporary view show the messages stored now.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spark_connector.datasource import RocketMQDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_connector.progress.ending import stop_at_end
    from spark_connector.progress.metrics import LagHistory, lag
    from spark_connector.read.refresh import refresh
    from spark_connector.worker.executors import reader_ids
    from spark_connector.write.duplicates import drop_duplicates
    from spark_connector.write.exactly_once import exactly_once_status, give_up_batch

__all__ = [
    "LagHistory",
    "RocketMQDataSource",
    "drop_duplicates",
    "exactly_once_status",
    "give_up_batch",
    "lag",
    "reader_ids",
    "refresh",
    "register",
    "stop_at_end",
]

_LAZY = {
    "LagHistory": "progress.metrics",
    "drop_duplicates": "write.duplicates",
    "exactly_once_status": "write.exactly_once",
    "give_up_batch": "write.exactly_once",
    "lag": "progress.metrics",
    "reader_ids": "worker.executors",
    "refresh": "read.refresh",
    "stop_at_end": "progress.ending",
}


def register(spark: "SparkSession") -> None:
    """Register ``format("rocketmq")`` with a session; repeated calls change nothing.

    Call it at the beginning of every thread of your own that writes: ``save()`` finds data sources written in
    Python only in the thread that made the session, and in threads in which this was called.

    Raises:
        ConfigError: the Python that Spark starts for data sources lacks this package; the text has the
            remedy.
    """
    from spark_connector.worker.interpreter import check_worker_python

    check_worker_python(spark)
    spark.dataSource.register(RocketMQDataSource)
    spark.createDataFrame([], "body string")  # makes the session the active one of this thread


def __getattr__(name: str) -> Any:
    """Import the other public names on first use: discovery imports this file, so it must load fast."""
    if name in _LAZY:
        return getattr(import_module(f"spark_connector.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
