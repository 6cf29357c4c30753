"""Write rows with stamps, twice as after a failed task, and read each row once.

python examples/write_stamped.py --name-server 127.0.0.1:9876 --topic Example
"""

import os
import sys
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession

from spark_connector import drop_duplicates

STAMPS = "map_filter(properties, (name, value) -> name LIKE 'SPARK%') AS properties"


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="The topic to write and to read; it must exist.")] = "Example",
) -> None:
    """Write four orders, write them again as a second attempt would, and drop the duplicates."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")  # few rows: Spark's 200 would cost minutes
        .getOrCreate()
    )
    where = {"nameServer": name_server, "topic": topic}

    def orders() -> DataFrame:
        stored = spark.read.format("rocketmq").options(**where).load()
        return stored.filter("tags = 'stamped'")

    rows = [("apples", "alice"), ("pears", "bob"), ("apples", "alice"), ("plums", "bob")]
    frame = spark.createDataFrame(
        rows, "body string, shardingKey string"
    )  # one customer, one queue, in order
    tagged = frame.selectExpr("*", "'stamped' AS tags")
    before = drop_duplicates(orders()).count()
    tagged.write.format("rocketmq").options(**where, stamp="true").mode("append").save()

    # a task that fails is run again and sends its rows again, with the stamps they had
    again = orders().selectExpr("body", "tags", STAMPS).localCheckpoint()
    again.write.format("rocketmq").options(**where).mode("append").save()

    print(f"{orders().count()} messages, {drop_duplicates(orders()).count() - before} of them new orders")
    spark.stop()


if __name__ == "__main__":
    typer.run(main)
