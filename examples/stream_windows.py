"""Count a topic's messages per tag in windows of ten seconds, with a watermark.

python examples/stream_windows.py --name-server 127.0.0.1:9876 --topic Example --seconds 60
"""

import os
import sys
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_connector


def show(counts: DataFrame, batch_id: int) -> None:
    """Print the windows that changed."""
    for row in counts.orderBy("window", "tags").collect():
        print(f"batch {batch_id}: {row.window.start:%H:%M:%S} {row.tags}: {row['count']}", flush=True)


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="What to read; it must exist.")] = "Example",
    seconds: Annotated[int, typer.Option(help="How long to go on; 0: until all there is is read.")] = 0,
) -> None:
    """Count in windows of the brokers' store time; messages later than the watermark are dropped."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    where = {"nameServer": name_server, "topic": topic, "startingOffsets": "earliest"}
    messages = spark.readStream.format("rocketmq").options(**where).load()
    counts = (
        messages.withWatermark("storeTimestamp", "30 seconds")
        .groupBy(F.window("storeTimestamp", "10 seconds"), "tags")
        .count()
    )

    query = counts.writeStream.outputMode("update").foreachBatch(show)
    running = (
        query.trigger(processingTime="2 seconds") if seconds else query.trigger(availableNow=True)
    ).start()
    running.awaitTermination(seconds or None)
    print(f"{sum(spark_connector.lag(running).values())} messages wait")
    running.stop()
    spark.stop()


if __name__ == "__main__":
    typer.run(main)
