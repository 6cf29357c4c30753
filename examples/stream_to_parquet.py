"""Stream a topic into Parquet files, every message exactly once.

python examples/stream_to_parquet.py --name-server 127.0.0.1:9876 --topic Example --folder /tmp/example
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    folder: Annotated[Path, typer.Option(help="Where files and checkpoint go.")],
    topic: Annotated[str, typer.Option(help="What to read; it must exist.")] = "Example",
    max_offsets: Annotated[int, typer.Option(help="Maximum number of messages per micro-batch.")] = 5000,
) -> None:
    """Read all messages that exist now; run it again for newer ones."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

    messages = (
        spark.readStream.format("rocketmq")
        .option("nameServer", name_server)
        .option("topic", topic)
        .option("startingOffsets", "earliest")  # for a new query; later runs continue at the checkpoint
        .option("maxOffsetsPerTrigger", max_offsets)
        .load()
    )
    query = (
        messages.writeStream.format("parquet")
        .option("path", str(folder / "messages"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)  # without this line the query runs until it is stopped
        .start()
    )
    query.awaitTermination()

    batches = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    print(f"{sum(batches)} messages read in {len(batches)} micro-batches")
    print(f"{spark.read.parquet(str(folder / 'messages')).count()} messages in {folder / 'messages'}")
    spark.stop()


if __name__ == "__main__":
    typer.run(main)
