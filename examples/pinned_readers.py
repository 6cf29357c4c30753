"""Share a topic's queues among Spark tasks as a consumer group would, on chosen machines only.

python examples/pinned_readers.py --name-server 127.0.0.1:9876 --topic Example --ips 127.0.0.1
"""

import os
import sys
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from pyspark.sql.functions import collect_set, concat_ws, count_if, sort_array, spark_partition_id

from spark_connector import reader_ids


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="What to read; it must exist.")] = "Example",
    ips: Annotated[str, typer.Option(help="Only readers on these machines get queues.")] = "127.0.0.1",
    tags: Annotated[str, typer.Option(help="Only messages with one of these tags, e.g. new||old.")] = "",
) -> None:
    """Print the queues that each reader has read."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    options = {
        "nameServer": name_server,
        "topic": topic,
        "includeProperties": "false",  # faster without this column
        "readerIds": ",".join(reader_ids(spark)),  # one for each task that runs at a time
        "allocator": "PINNED_BY_IP",
        "allocator.ips": ips,
        "allocator.verifyHost": "warn",  # Spark decides where tasks run
    }
    if tags:
        options["tags"] = tags

    messages = spark.read.format("rocketmq").options(**options).load()
    queues = sort_array(collect_set(concat_ws("/", "brokerName", "queueId")))
    by_reader = messages.groupBy(spark_partition_id().alias("partition")).agg(
        queues.alias("queues"), count_if(messages.queueId >= 0).alias("messages")
    )
    for row in by_reader.orderBy("partition").collect():
        print(f"partition {row.partition}: {row.messages} messages of {', '.join(row.queues)}")
    print(f"{messages.count()} messages of {topic}")
    spark.stop()


if __name__ == "__main__":
    typer.run(main)
