"""``python -m tools.measure.bench.proxied_spark``: Spark through a 5.x proxy, beside the broker itself.

Both sides use one local cluster and one Spark, take turns, and have a round that does not count. The ratio of
their median rates counts, not the rates.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from rmqtools import Admin, ClientConfig
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster import LocalCluster
from tests.support.proxy import running_proxy

_QUEUES = 4


def write_and_read(rows: DataFrame, count: int, topic: str, name_server: str) -> tuple[float, float]:
    """Seconds of the write and of the read."""
    options = {"nameServer": name_server, "topic": topic}
    began = SYSTEM_CLOCK.monotonic()
    rows.write.format("rocketmq").options(**options).mode("append").save()
    written = SYSTEM_CLOCK.monotonic()
    read = rows.sparkSession.read.format("rocketmq").options(**options).load()
    distinct = read.selectExpr("body").distinct().count()
    assert distinct == count, f"{distinct} of {count} rows"
    return written - began, SYSTEM_CLOCK.monotonic() - written


def main() -> None:
    """Print the rates of each round and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    taking: dict[str, list[float]] = {}
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    with tempfile.TemporaryDirectory() as folder, LocalCluster() as cluster:
        spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        rows = spark.range(given.rows).selectExpr(
            "cast(concat(lpad(id, 12, '0'), repeat('x', 88)) as binary) body"
        )
        with (
            running_proxy(cluster, Path(folder)) as proxy,
            Admin(ClientConfig(name_server=cluster.name_server)) as admin,
        ):
            for turn in range(given.rounds + 1):
                sides = {"broker": cluster.name_server, "proxy": proxy}
                for side in sorted(sides, reverse=turn % 2 == 1):
                    topic = f"{side}-{turn}"
                    admin.create_topic(topic, read_queue_nums=_QUEUES, write_queue_nums=_QUEUES)
                    spent = write_and_read(rows, given.rows, topic, sides[side])
                    for what, seconds in zip(("write", "read"), spent, strict=True):
                        print(f"{what} {side:6} {given.rows / seconds:10,.0f} rows/s", flush=True)
                        if turn:
                            taking.setdefault(f"{what} {side}", []).append(seconds)
        spark.stop()
    medians = {name: statistics.median(spent) for name, spent in taking.items()}
    for what in ("write", "read"):
        print(f"{what}: {medians[f'{what} broker'] / medians[f'{what} proxy']:.2f} of the broker's rate")


if __name__ == "__main__":
    main()
