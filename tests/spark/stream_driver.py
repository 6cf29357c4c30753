"""A driver that reads a topic into Parquet, to be killed.

Usage: python -m tests.spark.stream_driver FOLDER OPTIONS

FOLDER gets ``rows`` and ``checkpoint``; OPTIONS are the source's, as JSON. Reads everything there is, then
ends with exit code 0.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(folder: Path, options: dict[str, str]) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        # who is killed tidies nothing up, so nothing is left outside the folder
        .config("spark.local.dir", str(folder / "local"))
        .config(
            "spark.driver.extraJavaOptions",
            f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={folder}",
        )
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.format("rocketmq").options(**options).load()
    sink = rows.writeStream.format("parquet").option("path", str(folder / "rows"))
    query = sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
