"""Apache RocketMQ as a Spark data source: ``spark.read.format("rocketmq")``, ``df.write.format("rocketmq")``.

With the package installed nothing has to be registered. Where Spark cannot discover it (``--py-files``,
Spark Connect, another broken ``pyspark_*`` package on the path), call :func:`register` once per session.

What a write with ``stamp`` stored twice: :func:`spark_connector.duplicates.drop_duplicates` drops it, here
too. Readers for the option ``readerIds``: :func:`spark_connector.executors.reader_ids`, here too.
How far streaming queries are behind: :func:`spark_connector.metrics.lag` and
:class:`spark_connector.metrics.LagHistory`, here too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spark_connector.datasource import RocketMQDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_connector.duplicates import drop_duplicates
    from spark_connector.executors import reader_ids
    from spark_connector.metrics import LagHistory, lag

__all__ = ["LagHistory", "RocketMQDataSource", "drop_duplicates", "lag", "reader_ids", "register"]

_LAZY = {
    "LagHistory": "metrics",
    "drop_duplicates": "duplicates",
    "lag": "metrics",
    "reader_ids": "executors",
}


def register(spark: "SparkSession") -> None:
    """Make ``format("rocketmq")`` known to a session by hand; doing so again changes nothing."""
    spark.dataSource.register(RocketMQDataSource)


def __getattr__(name: str) -> Any:
    """The rest on first use: discovery imports this file, which must be light."""
    if name in _LAZY:
        return getattr(import_module(f"spark_connector.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
