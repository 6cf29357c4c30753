"""A program that writes numbered rows through Spark, and lets whoever started it do harm meanwhile.

python -m tests.spark.paced_write '{"nameServer": ..., "topic": ...}' --rows N --folder F

Each of two tasks writes half of the rows. At a third and at two thirds of them it touches ``reached-1``
and ``reached-2`` in the folder, and goes on slowly until ``go-1`` and ``go-2`` are there, so that requests
are on the wire all the time.
"""

import argparse
import json
from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.paced_source import TASKS, PacedSource


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("options", type=json.loads)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--row-bytes", type=int, default=400)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    spark = (
        SparkSession.builder.master(f"local[{TASKS}]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    spark.dataSource.register(PacedSource)
    paced = spark.read.format("paced").options(
        rows=given.rows, rowBytes=given.row_bytes, folder=str(given.folder)
    )
    paced.load().write.format("rocketmq").options(**given.options).mode("append").save()
    print("saved", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
