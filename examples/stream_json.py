"""Read JSON bodies as columns while they arrive.

python examples/stream_json.py --name-server 127.0.0.1:9876 --topic Example
"""

import os
import sys
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ORDER = "id bigint, item string, price double"


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="The topic to write and to read; it must exist.")] = "Example",
) -> None:
    """Send three orders as JSON, stream the topic, and sum the orders."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")  # few rows: Spark's 200 would cost minutes
        .getOrCreate()
    )
    where = {"nameServer": name_server, "topic": topic}

    orders = spark.createDataFrame([(1, "tea", 3.5), (2, "cup", 8.0), (3, "tea", 3.5)], ORDER)
    bodies = orders.select(F.to_json(F.struct("*")).alias("body"), F.lit("order").alias("tags"))
    bodies.write.format("rocketmq").options(**where).mode("append").save()

    messages = spark.readStream.format("rocketmq").options(**where, startingOffsets="earliest").load()
    order = F.from_json(messages.body.cast("string"), ORDER)  # null if a body is not such JSON
    columns = messages.where("tags = 'order'").select(order.alias("order")).select("order.*")
    query = (
        columns.groupBy("item")
        .agg(F.count("*").alias("orders"), F.sum("price").alias("sum"))
        .writeStream.format("memory")
        .queryName("ordered")
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    spark.table("ordered").orderBy("item").show()
    spark.stop()


if __name__ == "__main__":
    typer.run(main)
