"""Short programs, the same on every kind of Spark.

Their arguments are what makes the session, the name server and the topic.
"""

from typing import Final

EXECUTORS: Final = """
builder = builder.config("spark.ui.enabled", "false").config("spark.executor.memory", "512m")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
builder = builder.config("spark.scheduler.minRegisteredResourcesRatio", "1")
"""
"""Settings of a session on a cluster of this machine."""

READ_AND_WRITE: Final = """
options = {"nameServer": sys.argv[2], "topic": sys.argv[3]}
rows = spark.range(2000).selectExpr("concat('body ', id) AS body", "'t' AS tags").repartition(4)
rows.write.format("rocketmq").options(**options).mode("append").save()
read = spark.read.format("rocketmq").options(**options).load()
print("rows:", read.count(), "distinct:", read.select("body").distinct().count())
print("tagged:", spark.read.format("rocketmq").options(**options, tags="t", readers="3").load().count())
"""
WRITTEN: Final = ["rows: 2000 distinct: 2000", "tagged: 2000"]
"""What it prints."""

COMPILED: Final = """
def compiled(_):
    import rmqtools.compiled
    return rmqtools.compiled.twins is not None
print(compiled(0), *set(spark.sparkContext.parallelize(range(4), 4).map(compiled).collect()))
"""
"""Print whether the driver has the compiled module, and what executors say of theirs."""


def program(*parts: str) -> str:
    """A program that begins with ``builder``, a session's builder."""
    head = ("import sys", "from pyspark.sql import SparkSession", "builder = SparkSession.builder")
    return "\n".join((*head, *parts))
