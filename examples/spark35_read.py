"""Read a topic with Spark 3.5, which has no Python data sources: ``mapInArrow`` over ``read_range``.

python examples/spark35_read.py --name-server 127.0.0.1:9876 --topic Example
"""

import os
import sys
from collections.abc import Iterator
from typing import Annotated

import pyarrow as pa
import typer
from pyspark.sql import DataFrame, SparkSession

from rmqtools import Admin, Client, ClientConfig, MessageQueue, QueueRange
from rmqtools.arrow import read_range, select_columns

RANGE = "topic string, broker_name string, queue_id int, begin long, end long"
COLUMNS = {  # some of the columns of rmqtools.arrow.MESSAGE_SCHEMA, with Spark's types
    "brokerName": "string",
    "queueId": "int",
    "queueOffset": "long",
    "body": "binary",
    "tags": "string",
    "keys": "string",
    "properties": "map<string,string>",
    "storeTimestamp": "timestamp",
}


def read_topic(spark: SparkSession, name_server: str, topic: str) -> DataFrame:
    """All messages that the topic has now; one task for each queue, the same messages in every action."""
    config = ClientConfig(name_server=name_server)
    with Admin(config) as admin:
        queues = admin.fetch_subscribe_queues(topic)
        ranges = [
            (topic, queue.broker_name, queue.queue_id, admin.min_offset(queue), admin.max_offset(queue))
            for queue in queues
        ]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read, in the tasks: each row of the batches is a range to read."""
        with Client(config) as client:
            for row in (row for batch in batches for row in batch.to_pylist()):
                queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
                range_ = QueueRange(queue, row["begin"], row["end"])
                yield from read_range(client, range_, schema=select_columns(*COLUMNS))

    planned = spark.sparkContext.parallelize(ranges, len(ranges)).toDF(RANGE)
    return planned.mapInArrow(read, ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()))


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="What to read.")] = "Example",
) -> None:
    """Count the messages of each queue."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    messages = read_topic(spark, name_server, topic)
    for row in messages.groupBy("brokerName", "queueId").count().sort("brokerName", "queueId").collect():
        print(f"{row.brokerName} queue {row.queueId}: {row['count']} messages")
    print(f"{messages.count()} messages in {topic}")
    spark.stop()


if __name__ == "__main__":
    typer.run(main)
