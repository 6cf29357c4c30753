"""Jobs on a cluster, one after another; each stands still in the middle while an executor is killed.

python -m tests.spark.killed_executors MASTER FOLDER '{"NAME": {"job": ..., "source": {}, "target": {}}}'

Each job has FOLDER/NAME. The first attempt of task 0 passes half of its rows on and writes the process id of
its executor to ``held``. Then it waits to be killed, or for the file ``go``, and fails. Job ``between`` waits
for ``go`` when its executors hold its rows in memory; then it kills them all. Each attempt of task 0 leaves a
file ``attempt-N``. With ``speculation`` Spark runs a slow task a second time, beside the first.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

ROWS = 6000  # of a task: more than Spark keeps between two processes
_FORMAT = "rocketmq"
_PAUSE = 0.02  # seconds
HELD_SECONDS = 240.0  # an executor waits no longer

Options = Mapping[str, Any]


def executor_pid() -> int:
    """The Java process of this Python worker: its daemon's parent."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


def held(folder: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass the rows of a task on; the first attempt of task 0 stops half-way."""
    context = TaskContext.get()
    assert context is not None
    if context.partitionId():
        yield from batches
        return
    (folder / f"attempt-{context.attemptNumber()}").touch()
    passed = 0
    for batch in batches:
        yield batch
        passed += batch.num_rows
        if passed >= ROWS // 2 and not context.attemptNumber():
            announce(folder, str(executor_pid()))
            await_go(folder)
            raise RuntimeError("after half of the rows")


def announce(folder: Path, text: str) -> None:
    """Write ``held`` at once."""
    (folder / "holding").write_text(text)
    (folder / "holding").rename(folder / "held")


def await_go(folder: Path) -> None:
    """Wait for the file ``go``, or to be killed."""
    deadline = time.monotonic() + HELD_SECONDS
    while not (folder / "go").exists():
        assert time.monotonic() < deadline, "nobody killed this executor"
        time.sleep(_PAUSE)


def load(spark: SparkSession, options: Options) -> DataFrame:
    return spark.read.format(_FORMAT).options(**options["source"]).load()


def read(spark: SparkSession, folder: Path, options: Options) -> None:
    """Topic -> Parquet."""
    frame = load(spark, options).select("body")
    frame.mapInArrow(partial(held, folder), "body binary").write.parquet(str(folder / "rows"))


def write(spark: SparkSession, folder: Path, options: Options) -> None:
    """Numbers -> topic."""
    frame = spark.range(0, 2 * ROWS, 1, 2).selectExpr("rpad(lpad(id, 6, '0'), 1024, '.') AS body")
    rows = frame.mapInArrow(partial(held, folder), "body string")
    rows.write.format(_FORMAT).options(**options["target"]).mode("append").save()


def between(spark: SparkSession, folder: Path, options: Options) -> None:
    """Topic -> memory -> topic."""
    frame = load(spark, options).select("body").persist()
    frame.count()
    pids = spark.sparkContext.parallelize(range(8), 8).map(lambda _: executor_pid()).collect()
    announce(folder, "")
    await_go(folder)
    for pid in set(pids):
        os.kill(pid, signal.SIGKILL)
    frame.write.format(_FORMAT).options(**options["target"]).mode("append").save()


JOBS: dict[str, Callable[[SparkSession, Path, Options], None]] = {
    job.__name__: job for job in (read, write, between)
}


def main(master: str, folder: Path, jobs: Mapping[str, Options]) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.scheduler.minRegisteredResourcesRatio", "1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
        .config("spark.speculation", any(job.get("speculation") for job in jobs.values()))
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.multiplier", "1.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for name, options in jobs.items():
        JOBS[options["job"]](spark, folder / name, options)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
