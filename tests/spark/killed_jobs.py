"""Several jobs of Spark in one driver that is killed; started again, streams go on and batch jobs start anew.

python -m tests.spark.killed_jobs FOLDER '{"NAME": {"job": ..., "source": {...}, "target": {...}}}'

Each job has FOLDER/NAME for its ``checkpoint`` and ``rows``. Until FOLDER holds ``last``, streams do not end,
and jobs are held up at work until they are killed: tasks of batch jobs, and of streams in the micro-batches
from number ``hold_from`` on, read half of each batch of rows slowly and do not end; ``foreachBatch`` does not
return after its write. With ``last`` all jobs run to the end of what there is; the last line printed is the
error of each, or null, as JSON.

Each task, planning and commit starts Pythons, and Spark waits ten seconds for one: so there are few tasks,
streams begin one after another, and a stream begins a micro-batch every other second.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_connector import register

_FORMAT = "rocketmq"
_BATCH = "streaming.sql.batchId"  # local property of Spark's jobs
_HELD_ROWS, _PAUSE = 20, 0.02  # rows at a time, and seconds between them
_DEADLINE = 600.0  # seconds for the kill
_BEGINS = Lock()  # one stream at a time

_TRIES = 20
_SPARKS_OWN = "failed to connect back"  # it waits 10 s for its Python worker

Job = Mapping[str, Any]


def passed_on(last: Path, hold_from: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a task; slowly if the task belongs to a micro-batch that is to be hit."""
    number = TaskContext.get().getLocalProperty(_BATCH)
    if number is not None and int(number) < hold_from:
        yield from batches
        return
    for batch in batches:
        at = batch.num_rows // 2
        yield batch.slice(0, at)
        while at < batch.num_rows and not last.exists():
            yield batch.slice(at, _HELD_ROWS)
            at += _HELD_ROWS
            time.sleep(_PAUSE)
        yield batch.slice(at)
    hold(last)


def hold(last: Path) -> None:
    """Wait to be killed."""
    deadline = time.monotonic() + _DEADLINE
    while not last.exists():
        assert time.monotonic() < deadline, "nobody killed this job"
        time.sleep(_PAUSE)


def paced(frame: DataFrame, folder: Path, job: Job) -> DataFrame:
    last = folder.parent / "last"
    return frame.mapInArrow(partial(passed_on, last, job.get("hold_from", 0)), frame.schema)


def changed(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("concat('new-', decode(body, 'utf-8')) AS body", "keys")


def read_batch(spark: SparkSession, folder: Path, job: Job) -> None:
    """Read -> transform -> Parquet."""
    frame = paced(spark.read.format(_FORMAT).options(**job["source"]).load(), folder, job)
    changed(frame).write.mode("overwrite").parquet(str(folder / "rows"))


def copy(spark: SparkSession, folder: Path, job: Job) -> None:
    """Read -> write, as it is."""
    frame = paced(spark.read.format(_FORMAT).options(**job["source"]).load(), folder, job)
    frame.write.format(_FORMAT).options(**job["target"]).mode("append").save()


def write_stream(spark: SparkSession, folder: Path, job: Job) -> None:
    """Read -> transform -> write, micro-batch by micro-batch."""
    writer = (
        changed(_held(_stream(spark, job), folder, job)).writeStream.format(_FORMAT).options(**job["target"])
    )
    _run(writer, folder)


def write_each_batch(spark: SparkSession, folder: Path, job: Job) -> None:
    """The same, as batch writes in ``foreachBatch``."""

    def write(frame: DataFrame, number: int) -> None:
        frame.write.format(_FORMAT).options(**job["target"]).mode("append").save()
        if "hold_from" in job and number >= job["hold_from"]:
            hold(folder.parent / "last")

    _run(changed(_stream(spark, job)).writeStream.foreachBatch(write), folder)


def write_files(spark: SparkSession, folder: Path, job: Job) -> None:
    """A stream into Parquet, as it was read."""
    rows = _held(_stream(spark, job), folder, job)
    _run(rows.writeStream.format("parquet").option("path", str(folder / "rows")), folder)


def write_kafka(spark: SparkSession, folder: Path, job: Job) -> None:
    """A stream into a topic of Kafka; the jars of its sink are the job's ``jars``."""
    rows = changed(_stream(spark, job)).selectExpr("body AS value")
    _run(rows.writeStream.format("kafka").options(**job["target"]), folder)


def write_stateful(spark: SparkSession, folder: Path, job: Job) -> None:
    """A stream with state into a topic; the job's ``query`` names it."""
    rows = QUERIES[job["query"]](spark, job)
    rows = rows.selectExpr("concat_ws(' ', *) AS text").selectExpr("rpad(text, 2000, '.') AS body")
    _run(rows.writeStream.format(_FORMAT).options(**job["target"]), folder)


def distinct(spark: SparkSession, job: Job) -> DataFrame:
    """Each number once."""
    return _events(spark, job).dropDuplicatesWithinWatermark(["number"]).select("number")


def sessions(spark: SparkSession, job: Job) -> DataFrame:
    """Each number with the count of its events."""
    window = F.session_window("time", "10 seconds")
    return _events(spark, job).groupBy("number", window).count().select("number", "count")


def joined(spark: SparkSession, job: Job) -> DataFrame:
    """Each number with the count of its events, by a left outer join of the first with the second."""
    first, second = (_events(spark, job).where(f"kind = '{kind}'") for kind in ("first", "second"))
    in_time = F.expr("a.number = b.number AND b.time BETWEEN a.time AND a.time + INTERVAL 5 SECONDS")
    rows = first.alias("a").join(second.alias("b"), in_time, "leftOuter")
    return rows.selectExpr("a.number", "IF(b.number IS NULL, 1, 2)")


QUERIES = {query.__name__: query for query in (distinct, sessions, joined)}


JOBS: dict[str, Callable[[SparkSession, Path, Job], None]] = {
    job.__name__: job
    for job in (read_batch, copy, write_stream, write_each_batch, write_files, write_kafka, write_stateful)
}


def _stream(spark: SparkSession, job: Job) -> DataFrame:
    return spark.readStream.format(_FORMAT).options(**job["source"]).load()


def _events(spark: SparkSession, job: Job) -> DataFrame:
    """Bodies such as ``17 3600 first``: a number, its time in seconds, and the kind of the event."""
    words = _stream(spark, job).selectExpr("split(decode(body, 'utf-8'), ' ') AS word")
    events = words.selectExpr(
        "word[0] AS number", "timestamp_seconds(CAST(word[1] AS BIGINT)) AS time", "word[2] AS kind"
    )
    return events.withWatermark("time", "10 seconds")


def _held(frame: DataFrame, folder: Path, job: Job) -> DataFrame:
    return paced(frame, folder, job) if "hold_from" in job else frame


def _run(writer: Any, folder: Path) -> None:
    is_last = (folder.parent / "last").exists()
    trigger = {"availableNow": True} if is_last else {"processingTime": "2 seconds"}
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(**trigger)
    with _BEGINS:
        query = writer.start()
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(_PAUSE)
    query.awaitTermination()


def _session(folder: Path, jars: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[10]")  # a slot for each task that is held up
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.local.dir", str(folder / "local"))  # who is killed tidies nothing up
        .config("spark.jars", jars)
        .config(
            "spark.driver.extraJavaOptions",
            f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={folder}",
        )
        .getOrCreate()
    )


def error_of(job: Callable[[], None]) -> str | None:
    """Run a job, again only where Spark failed by itself."""
    for left in reversed(range(_TRIES)):
        try:
            job()
        except Exception as error:  # noqa: BLE001  # any error is the outcome
            if not left or _SPARKS_OWN not in str(error):
                return str(error)
        else:
            return None
    raise AssertionError


def main(folder: Path, jobs: Mapping[str, Job]) -> None:
    spark = _session(folder, ",".join(job["jars"] for job in jobs.values() if "jars" in job))
    spark.sparkContext.setLogLevel("ERROR")
    errors: dict[str, str | None] = {}

    def run(name: str) -> None:
        session = spark.newSession()  # jobs that begin at once must not share what Spark keeps of the source
        register(session)
        errors[name] = error_of(partial(JOBS[jobs[name]["job"]], session, folder / name, jobs[name]))
        if not (folder / "last").exists():
            print(f"{name} ended early: {errors[name]}", file=sys.stderr, flush=True)
            os._exit(1)

    threads = [Thread(target=run, args=(name,)) for name in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(errors), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
