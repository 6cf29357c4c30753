"""Streaming queries as tests run them: into Parquet, by micro-batches that can be looked at."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery

from rmqtools import Admin, Message, MessageQueue, Producer
from rmqtools.clock import SYSTEM_CLOCK
from tests.support.patience import PATIENCE
from tests.support.reading import await_writable
from tests.support.spark_limit import GAVE_UP

PLACE = ("topic", "brokerName", "queueId", "queueOffset")

Place = tuple[str, str, int, int]


class Stream:
    """One query with its checkpoint and its Parquet files; ``start`` again is a restart."""

    def __init__(self, spark: SparkSession, folder: Path, options: dict[str, Any]) -> None:
        self.folder = folder
        self.options = options
        self._spark = spark

    def load(self) -> DataFrame:
        return self._spark.readStream.format("rocketmq").options(**self.options).load()

    def start(self, **trigger: Any) -> StreamingQuery:
        """Let it run; returns after its first micro-batch."""

        def first_batch(query: StreamingQuery) -> None:
            await_true(lambda: query.lastProgress or not query.isActive, "the first micro-batch")
            if not query.isActive:
                query.awaitTermination(1)

        return run_to_end(lambda: self._begin(trigger or {"processingTime": "0 seconds"}), first_batch)

    def run(self, **trigger: Any) -> StreamingQuery:
        """Run to the end: everything that is there now, by ``availableNow`` unless told otherwise."""

        return run_to_end(lambda: self._begin(trigger or {"availableNow": True}))

    def _begin(self, trigger: dict[str, Any]) -> StreamingQuery:
        writer = self.load().writeStream.format("parquet").option("path", str(self.folder / "rows"))
        return writer.option("checkpointLocation", str(self.checkpoint)).trigger(**trigger).start()

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def is_written(self) -> bool:
        """Return whether a first micro-batch has ended."""
        return (self.folder / "rows" / "_spark_metadata" / "0").exists()

    def rows(self) -> list[Row]:
        return self._spark.read.parquet(str(self.folder / "rows")).collect()

    def places(self) -> Counter[Place]:
        """How often every stored message arrived."""
        frame = self._spark.read.parquet(str(self.folder / "rows")).select(*PLACE)
        return Counter(map(tuple, frame.collect()))

    def planned(self) -> list[dict[str, Any]]:
        """The offsets of every micro-batch, from the checkpoint."""
        files = [file for file in (self.checkpoint / "offsets").iterdir() if file.name.isdigit()]
        return [
            json.loads(file.read_text().splitlines()[2])
            for file in sorted(files, key=lambda file: int(file.name))
        ]


def counts(query: StreamingQuery) -> list[int]:
    """The rows of every micro-batch that had any."""
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]


def stored_places(admin: Admin, *topics: str) -> Counter[Place]:
    """Every message that brokers hold, once."""
    return Counter(
        (topic, queue.broker_name, queue.queue_id, offset)
        for topic in topics
        for queue in admin.fetch_subscribe_queues(topic)
        for offset in range(admin.min_offset(queue), admin.max_offset(queue))
    )


def fill(
    producer: Producer, admin: Admin, counts: dict[MessageQueue, int], *, body: bytes = b"x" * 100
) -> None:
    """Send so many messages to each queue once it has a route, and wait until they can be read."""
    await_writable(admin, producer, counts)
    ends = {queue: admin.max_offset(queue) + count for queue, count in counts.items()}
    for queue, count in counts.items():
        for _ in range(count):
            producer.send(Message(queue.topic, body), queue=queue)
    admin.await_readable(ends, timeout=PATIENCE)


def await_true(condition: Callable[[], Any], what: str, *, timeout: float = PATIENCE) -> None:
    deadline = SYSTEM_CLOCK.monotonic() + timeout
    while not condition():
        assert SYSTEM_CLOCK.monotonic() < deadline, f"not in {timeout:.0f} s: {what}"


def _end(query: StreamingQuery) -> None:
    assert query.awaitTermination(PATIENCE)


def run_to_end(
    start: Callable[[], StreamingQuery], wait: Callable[[StreamingQuery], None] = _end
) -> StreamingQuery:
    """Start a query and wait for it; again only where Spark gave up its own worker on a busy machine."""
    for tries_left in (2, 1, 0):
        query = start()
        try:
            wait(query)
        except StreamingQueryException as error:
            if not tries_left or GAVE_UP not in str(error):
                raise
        else:
            return query
    raise AssertionError


def error_of(action: Callable[[], Any]) -> str:
    """The text a user would see; where Spark gave up its own worker, the test is run again."""
    with pytest.raises((PySparkException, Py4JError)) as error:
        action()
    assert GAVE_UP not in str(error.value), GAVE_UP
    return str(error.value)


def next_offsets(planned: dict[str, Any], queues: Iterable[MessageQueue]) -> list[int]:
    """The next offsets in JSON, of these queues."""
    return [planned["offsets"][q.topic][q.broker_name][str(q.queue_id)] for q in queues]
