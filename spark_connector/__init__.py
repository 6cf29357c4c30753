"""Apache RocketMQ as a Spark data source: ``spark.read.format("rocketmq")``, ``df.write.format("rocketmq")``.

With the package installed nothing has to be registered. Where Spark cannot discover it (``--py-files``,
Spark Connect, another broken ``pyspark_*`` package on the path), call :func:`register` once per session.
"""

from typing import TYPE_CHECKING

from spark_connector.datasource import RocketMQDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RocketMQDataSource", "register"]


def register(spark: "SparkSession") -> None:
    """Make ``format("rocketmq")`` known to a session by hand; doing so again changes nothing."""
    spark.dataSource.register(RocketMQDataSource)
