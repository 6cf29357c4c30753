"""Spark's side: ``python -m tools.measure.bench.ours_spark NAME_SERVER``; works come as in program.py."""

import os
import statistics
import sys
import tempfile
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tools.measure.bench.program import Result, Work, serve


def session(**settings: str) -> SparkSession:
    """Start a local session of two threads; Spark's Python is this one."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    own = {
        "spark.ui.enabled": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]").appName("bench").config(map={**own, **settings})
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class SparkSide:
    """One local session of two threads for the whole bench."""

    def __init__(self, name_server: str) -> None:
        self._name_server = name_server
        self._spark = session()

    def read(self, work: Work) -> Result:
        """Read a topic into the sink noop."""
        frame = self._spark.read.format("rocketmq").options(nameServer=self._name_server, topic=work["topic"])
        began = time.perf_counter()
        frame.load().write.format("noop").mode("overwrite").save()
        return {"count": int(work["total"]), "seconds": time.perf_counter() - began}

    def write(self, work: Work) -> Result:
        """Rows with body, tags, keys and properties to a topic."""
        frame = _rows(self._spark, int(work["total"]), int(work["size"]))
        began = time.perf_counter()
        frame.write.format("rocketmq").options(nameServer=self._name_server, topic=work["topic"]).mode(
            "append"
        ).save()
        return {"count": int(work["total"]), "seconds": time.perf_counter() - began}

    def stream(self, work: Work) -> Result:
        """Micro-batches of ``rows`` from a topic; the median time of one."""
        source = (
            self._spark.readStream.format("rocketmq")
            .options(nameServer=self._name_server, topic=work["topic"], startingOffsets="earliest")
            .option("maxOffsetsPerTrigger", work["rows"])
            .load()
        )
        return self._batches(source, int(work["batches"]), int(work["rows"]))

    def rate(self, work: Work) -> Result:
        """Read Spark's own source of numbers."""
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", work["rows"]).load()
        return self._batches(source, int(work["batches"]), int(work["rows"]))

    def close(self) -> None:
        """Stop the session."""
        self._spark.stop()

    def _batches(self, source: DataFrame, batches: int, rows: int) -> Result:
        with tempfile.TemporaryDirectory() as checkpoint:
            query = source.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
            while len([one for one in query.recentProgress if one["numInputRows"]]) < batches:
                if query.exception() is not None:
                    raise RuntimeError(str(query.exception()))
                time.sleep(0.05)
            progress = [one for one in query.recentProgress if one["numInputRows"]]
            query.stop()
        times = [one["durationMs"]["triggerExecution"] for one in progress[1:]]  # the first is slower
        return {
            "count": rows * len(times),
            "seconds": sum(times) / 1000,
            "batch_ms": statistics.median(times),
        }


def _rows(spark: SparkSession, count: int, size: int) -> DataFrame:
    return spark.range(0, count, 1, 2).select(
        F.lit(bytearray(b"x" * size)).alias("body"),
        F.lit("TagA").alias("tags"),
        F.concat(F.lit("k"), F.col("id").cast("string")).alias("keys"),
        F.create_map(F.lit("src"), F.lit("bench")).alias("properties"),
    )


if __name__ == "__main__":
    side = SparkSide(sys.argv[1])
    try:
        serve({"read": side.read, "write": side.write, "stream": side.stream, "rate": side.rate})
    finally:
        side.close()
