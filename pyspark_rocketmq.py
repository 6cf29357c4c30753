"""Makes ``format("rocketmq")`` known to Spark, which looks for ``DefaultSource`` in modules named pyspark_*.

One import that raises here would hide every other such module from the session, so this one
reaches nothing but PySpark's own base class; all else is imported when the source is used.
"""

from spark_connector.datasource import RocketMQDataSource as DefaultSource

__all__ = ["DefaultSource"]
