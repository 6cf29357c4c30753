"""Write a DataFrame to a topic and read the topic back as one.

python examples/spark_write_read.py --name-server 127.0.0.1:9876 --topic Example
"""

import os
import sys
from typing import Annotated

import typer
from pyspark.sql import SparkSession


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="The topic to write and to read; it must exist.")] = "Example",
) -> None:
    """Write three rows with Spark, then show the topic's messages."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    where = {"nameServer": name_server, "topic": topic}

    rows = [
        (b"first", "new", "order-1", {"colour": "blue"}),
        (b"second", "new", "order-2", {"colour": "red"}),
        (b"third", None, None, None),
    ]
    frame = spark.createDataFrame(
        rows, "body binary, tags string, keys string, properties map<string,string>"
    )
    frame.write.format("rocketmq").options(**where).mode("append").save()  # Spark requires the mode

    messages = spark.read.format("rocketmq").options(**where).load()
    text = messages.body.cast("string").alias("text")
    messages.select("brokerName", "queueId", "queueOffset", text, "tags", "keys").show()
    print(f"{messages.count()} messages in {topic}")
    spark.stop()


if __name__ == "__main__":
    typer.run(main)
