"""What every version of PySpark must do, as one program.

Usage: python -m tests.spark.spark_smoke NAME_SERVER FOLDER [MASTER]

Prints one JSON object of its findings, which are FOUND on every Spark. Its topics are new, and it needs no
test library.
"""

import json
import os
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rmqtools import Admin, ClientConfig, Message, MessageQueue, Producer, ProducerConfig
from rmqtools.clock import SYSTEM_CLOCK

COUNT = 3000
FOUND = {
    "batch": True,
    "restarted_stream": list("12345"),
    "failed_first_batch": ["during", "later"],
    "running_stream": sorted(["1", *"2" * 8, *"3" * 8]),
    "written_stream": sorted(map(str, range(20))),
}
"""What all parts find; ``limits`` and ``version`` differ from version to version."""
_WORKER_TOO_LATE = "failed to connect back"  # Spark waits 10 s for its own Python worker, and no longer


class Smoke:
    """One session, and topics of one name server."""

    def __init__(self, name_server: str, folder: Path, master: str) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self.spark = (
            SparkSession.builder.master(master)
            .config("spark.executor.memory", "512m")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.local.dir", str(folder / "local"))
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("ERROR")
        self.folder = folder
        self.server = {"nameServer": name_server}
        self.admin = Admin(ClientConfig(name_server=name_server))
        self.producer = Producer(ProducerConfig(name_server=name_server, group="smoke"))
        self.admin.start()
        self.producer.start()

    def topic(self) -> str:
        name = f"smoke-{uuid.uuid4().hex[:12]}"
        self.admin.create_topic(name, read_queue_nums=2, write_queue_nums=2)
        return name

    def send(self, topic: str, *bodies: str) -> None:
        results = [self.producer.send(Message(topic, body.encode(), keys=[body])) for body in bodies]
        ends: dict[MessageQueue, int] = {}
        for result in results:
            ends[result.queue] = max(ends.get(result.queue, 0), result.queue_offset + 1)
        self.admin.await_readable(ends)

    def load(self, topic: str, **options: str) -> DataFrame:
        return self.spark.read.format("rocketmq").options(**self.server, topic=topic, **options).load()

    def stream(self, topic: str, **options: str) -> DataFrame:
        return self.spark.readStream.format("rocketmq").options(**self.server, topic=topic, **options).load()

    def run(self, frame: DataFrame, name: str, **options: str) -> None:
        """Run a query to its end: everything there is now, into Parquet or another format."""
        for tries_left in (2, 1, 0):
            writer = frame.writeStream.format("parquet").option("path", str(self.folder / name))
            if options:
                writer = frame.writeStream.format("rocketmq").options(**options)
            writer = writer.option("checkpointLocation", str(self.folder / f"{name}-checkpoint"))
            query = writer.trigger(availableNow=True).start()
            try:
                query.awaitTermination(120)
            except PySparkException as error:
                if not tries_left or _WORKER_TOO_LATE not in str(error):
                    raise
                continue
            return

    def parquet(self, name: str) -> list[str]:
        return bodies(self.spark.read.schema("body binary").parquet(str(self.folder / name)))


def bodies(frame: DataFrame) -> list[str]:
    return sorted(bytes(row.body).decode() for row in frame.select("body").collect())


def batch(smoke: Smoke) -> bool:
    """Rows with all that they may have are written and read back equal; columns and keys select."""
    topic = smoke.topic()
    sent = [(f"b{n}", "t", f"k{n}", {"n": str(n)}) for n in range(COUNT)]
    frame = smoke.spark.createDataFrame(
        sent, "body string, tags string, keys string, properties map<string,string>"
    )
    frame.write.format("rocketmq").options(**smoke.server, topic=topic).mode("append").save()
    rows = smoke.load(topic).collect()
    read = Counter((bytes(r.body).decode(), r.tags, r.keys, r.properties["n"]) for r in rows)
    some = smoke.load(topic, columns="queueOffset,body")
    return (
        read == Counter((body, tags, keys, own["n"]) for body, tags, keys, own in sent)
        and some.columns == ["queueOffset", "body"]
        and some.count() == COUNT
    )


def restarted_stream(smoke: Smoke) -> list[str]:
    """Two runs of one query with messages in between: everything once."""
    topic = smoke.topic()
    smoke.send(topic, "1", "2", "3")
    frame = smoke.stream(topic, startingOffsets="earliest")
    smoke.run(frame, "restarted")
    smoke.run(frame, "restarted")
    smoke.send(topic, "4", "5")
    smoke.run(frame, "restarted")
    return smoke.parquet("restarted")


def failed_first_batch(smoke: Smoke) -> list[str]:
    """A new query at latest that fails in its first batch loses nothing that comes before its restart."""
    topic = smoke.topic()
    smoke.send(topic, "before")
    seen: list[str] = []
    query = None

    def write(frame: DataFrame, number: int) -> None:
        found = bodies(frame)
        if number == 0 and len(attempts) < 2:
            raise RuntimeError("in the first batch")
        seen.extend(found)

    attempts: list[int] = []
    for body in ("during", "later", "last"):
        attempts.append(1)
        writer = smoke.stream(topic).writeStream.foreachBatch(write)
        query = (
            writer.option("checkpointLocation", str(smoke.folder / "first"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination(120)
        except PySparkException as error:
            if "in the first batch" not in str(error):
                raise
        smoke.send(topic, body)
    return sorted(seen)


def running_stream(smoke: Smoke) -> list[str]:
    """A query that runs reads what comes, queues that are added, and commits its offsets to a group."""
    topic, group = smoke.topic(), f"group-{uuid.uuid4().hex[:8]}"
    smoke.send(topic, "1")
    options = {"group": group, "commitOffsetsToGroup": "true", "pollInterval": "100ms"}
    frame = smoke.stream(topic, startingOffsets="earliest", **options)
    writer = frame.writeStream.format("parquet").option("path", str(smoke.folder / "running"))
    query = writer.option("checkpointLocation", str(smoke.folder / "running-checkpoint")).start()
    for count, body in enumerate(("2", "3"), start=1):
        there = partial(has_rows, smoke, "running", count)
        await_true(partial(lambda there: there() or not query.isActive, there))
        smoke.admin.create_topic(topic, read_queue_nums=2 + count, write_queue_nums=2 + count)
        smoke.send(topic, *[body] * 8)
    await_true(lambda: has_rows(smoke, "running", 17) or not query.isActive)
    offsets = partial(smoke.admin.fetch_consumer_offsets, group, topic)
    smoke.send(topic, "end")  # Spark tells of a finished batch when it plans the next
    await_true(lambda: sum(at or 0 for at in offsets().values()) >= 17 or not query.isActive)
    query.stop()
    return sorted(body for body in smoke.parquet("running") if body != "end")


def written_stream(smoke: Smoke) -> list[str]:
    """A query from one topic into another, with stamps, sharding keys and properties."""
    source, target = smoke.topic(), smoke.topic()
    smoke.send(source, *map(str, range(20)))
    frame = smoke.stream(source, startingOffsets="earliest").selectExpr(
        "body",
        "tags",
        "keys",
        "map('a', 'b') AS properties",
        "keys AS shardingKey",
        "CAST(NULL AS TIMESTAMP) AS deliverTimestamp",
    )
    smoke.run(frame, "written", **smoke.server, topic=target, stamp="true")
    await_true(lambda: smoke.load(target).count() >= 20)
    rows = smoke.load(target).collect()
    assert all(row.properties["a"] == "b" and "SPARK_STAMP" in row.properties for row in rows)
    return bodies(smoke.load(target))


def limits(smoke: Smoke) -> str:
    """A limit of a micro-batch: served, or refused by name."""
    topic = smoke.topic()
    smoke.send(topic, *map(str, range(8)))
    try:
        smoke.run(smoke.stream(topic, startingOffsets="earliest", maxOffsetsPerTrigger="4"), "limits")
    except PySparkException as error:
        return str(error)
    return f"{len(smoke.parquet('limits'))} rows"


def has_rows(smoke: Smoke, name: str, count: int) -> bool:
    log = smoke.folder / name / "_spark_metadata"
    return log.exists() and any(log.iterdir()) and len(smoke.parquet(name)) >= count


def await_true(condition: Callable[[], Any], *, timeout: float = 120.0) -> None:
    deadline = SYSTEM_CLOCK.monotonic() + timeout
    while not condition():
        assert SYSTEM_CLOCK.monotonic() < deadline, "not in time"


def main(name_server: str, folder: Path, master: str = "local[2]") -> None:
    smoke = Smoke(name_server, folder, master)
    parts = (batch, restarted_stream, failed_first_batch, running_stream, written_stream, limits)
    found = {"version": pyspark.__version__, **{part.__name__: part(smoke) for part in parts}}
    print(json.dumps(found))
    smoke.producer.close()
    smoke.admin.close()
    smoke.spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
