"""A driver that is killed again and again, and everything in the sink exactly once."""

import json
import os
import random
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from rmqtools.clock import SYSTEM_CLOCK
from tests.support.java_peer import JavaPeer, PeerMessage
from tests.support.patience import PROGRAM_PATIENCE

pytestmark = [pytest.mark.spark, pytest.mark.docker]

ROOT = Path(__file__).resolve().parents[2]
PLACE = ("brokerName", "queueId", "queueOffset")
_PORTION_BYTES = 20_000_000  # of bodies, for one call of the Java peer


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is written and how often the driver is killed."""

    messages: int
    large: int
    queues: int  # on each of three masters
    kills: int
    per_batch: int

    def messages_of(self, topic: str) -> Iterator[PeerMessage]:
        """Bodies of 1 B to 4 KB, short ones more often, some of 1 MB in between. The key is a number."""
        every = self.messages // self.large
        for number in range(self.messages + self.large):
            dice = random.Random(number)
            size = 1_000_000 if number % (every + 1) == every else 1 + int(4096 * dice.random() ** 2)
            body = (dice.randbytes(16) * (size // 16 + 1))[:size]
            yield PeerMessage(topic=topic, body=body, keys=(f"{number:010}",))


SMALL = Size(messages=4_000, large=2, queues=1, kills=1, per_batch=2_000)
FULL = Size(messages=200_000, large=40, queues=8, kills=5, per_batch=10_000)
FULL_SECONDS = 3600


class Driver:
    """The driver in a process of its own, with the JVM and the workers it starts."""

    def __init__(self, folder: Path, options: dict[str, Any]) -> None:
        self._folder = folder
        command = [sys.executable, "-m", "tests.spark.stream_driver", str(folder), json.dumps(options)]
        with (folder / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, stderr=log, start_new_session=True)
        self._done_before = self._batches_done()

    def await_batch(self, *, timeout: float) -> None:
        """Wait until a micro-batch of this run has ended, or the whole run."""
        deadline = SYSTEM_CLOCK.monotonic() + timeout
        while self._batches_done() == self._done_before and not self._ended(0.05):
            assert SYSTEM_CLOCK.monotonic() < deadline, self.log

    def kill(self, *, after: float = 0.0) -> bool:
        """kill -9, whatever it is doing; the JVM too. False: it had ended."""
        if self._ended(after):
            return False
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=30)
        return True

    def await_end(self, *, timeout: float) -> int:
        return self._process.wait(timeout)

    @property
    def log(self) -> str:
        return (self._folder / "driver.log").read_text()[-4000:]

    def _ended(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _batches_done(self) -> int:
        commits = self._folder / "checkpoint" / "commits"
        return sum(file.name.isdigit() for file in commits.iterdir()) if commits.exists() else 0


def fill(peer: JavaPeer, name_server: str, topic: str, size: Size) -> int:
    """Have the Java client write them; return the checksum of all bodies."""
    sent = checksum = 0
    for messages in portions(size.messages_of(topic)):
        lines = (message.to_json() for message in messages)
        results = peer.run("fill", name_server, lines=lines, timeout=600)
        assert {result["sendStatus"] for result in results} == {"SEND_OK"}
        sent += len(results)
        checksum += sum(zlib.crc32(message.body) for message in messages)
    assert sent == size.messages + size.large
    return checksum


def portions(messages: Iterator[PeerMessage]) -> Iterator[list[PeerMessage]]:
    """As much at a time as one Java process is handed."""
    portion: list[PeerMessage] = []
    size = 0
    for message in messages:
        portion.append(message)
        size += len(message.body)
        if size >= _PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def read_with_kills(folder: Path, options: dict[str, Any], size: Size, *, seed: int) -> int:
    """Start the driver, kill it at random moments, let it finish; return how often it was killed."""
    moments = random.Random(seed)
    killed = 0
    for _ in range(size.kills + 4):  # Spark may lose patience with its own worker on a busy machine
        driver = Driver(folder, options)
        try:
            if killed < size.kills:
                driver.await_batch(timeout=PROGRAM_PATIENCE)
                if driver.kill(after=moments.uniform(0, 2)):
                    killed += 1
                    continue
            if driver.await_end(timeout=FULL_SECONDS) == 0:
                return killed
            assert "failed to connect back" in driver.log, driver.log
        finally:
            driver.kill()
    raise AssertionError(driver.log)


def summary(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Per queue: how many, which offsets, a checksum of the bodies, and how many are out of order."""
    queue = Window.partitionBy("brokerName", "queueId").orderBy("queueOffset")
    rows = (
        frame.select(*PLACE, "keys", F.crc32("body").alias("crc"))
        .withColumn("is_late", (F.lag("keys").over(queue) >= F.col("keys")).cast("int"))
        .groupBy("brokerName", "queueId")
        .agg(
            F.count("*"),
            F.countDistinct("queueOffset"),
            F.min("queueOffset"),
            F.max("queueOffset"),
            F.sum("crc"),
            F.sum("is_late"),
        )
    )
    return sorted(map(tuple, rows.collect()))


@pytest.mark.parametrize(
    "size",
    [
        # in every run: tests/spark/test_stream_read.py, and tests/unit/spark_connector
        pytest.param(SMALL, id="small", marks=pytest.mark.slow),
        pytest.param(FULL, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(2 * FULL_SECONDS)]),
    ],
)
def test_a_driver_killed_at_random_moments_reads_every_message_once(
    spark, docker_cluster, new_topic, java_peer, tmp_path, size
):
    topic = new_topic(queues=size.queues)
    written = fill(java_peer, docker_cluster.name_server, topic, size)
    where = {"nameServer": docker_cluster.name_server, "topic": topic}
    limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": size.per_batch}

    killed = read_with_kills(tmp_path, {**where, **limits}, size, seed=7)

    streamed = summary(spark.read.parquet(str(tmp_path / "rows")))
    assert killed == size.kills
    assert sum(row[2] for row in streamed) == size.messages + size.large
    assert sum(row[6] for row in streamed) == written
    assert all(row[2] == row[3] == row[5] - row[4] + 1 and not row[7] for row in streamed)
    assert streamed == summary(spark.read.format("rocketmq").options(**where).load())
