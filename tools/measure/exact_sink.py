"""``python -m tools.measure.exact_sink``: exactly-once writes of Spark, broken at moments of a seed.

A stream writes rows to a topic while its driver is killed, a broker is killed, or the driver is stopped with
a second one started meanwhile; then executors of batch jobs on a cluster with two workers are killed, or run
a slow task twice at the same time (speculation). At the end the Java client reads what is there. With
``--kafka`` another stream of the same driver writes the same rows by Spark's Kafka sink, for comparison. The
whole of it, in some hours:

    python -m tools.measure.exact_sink --kafka --kills 20 --broker-kills 5 --pauses 20 \\
        --executor-kills 10 --speculations 3

With ``--rate-rows N`` it measures plain and exactly-once writes of rows of 1 KB, one broker, local[2].
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from rmqtools.errors import TopicNotFoundError
from rmqtools.policy.exact_append import LOCK_SECONDS
from tests.spark.killed_driver import KilledDriver
from tests.spark.killed_executors import HELD_SECONDS, ROWS
from tests.support.java_peer import JavaPeer
from tests.support.spark_processes import ROOT, environment, standalone_cluster
from tools.measure.bench.spark_kafka.kafka import jars as kafka_jars
from tools.measure.bench.spark_kafka.kafka import running_kafka

_SOURCE, _STREAMED, _TASKS = "numbers", "streamed", "tasks"
_MOMENTS = ("staged", "copied", "committed")
_QUIET = 120.0  # seconds after which a moment is over, though nothing was seen
_BODY = b"." * 500


@dataclass
class _Stage:
    """A cluster, the driver's jobs, and what was broken so far."""

    cluster: LocalCluster
    admin: Admin
    folder: Path
    chance: random.Random
    portion: int  # rows that are added before each break
    kafka: str = ""  # address of a Kafka broker for the stream beside
    sent: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def driver(self) -> KilledDriver:
        """Return a new driver of the same jobs."""
        return KilledDriver(self.folder, self.jobs(), self.admin)

    def jobs(self) -> dict[str, dict[str, Any]]:
        source = {
            "nameServer": self.cluster.name_server,
            "topic": _SOURCE,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(self.portion),
        }
        jobs: dict[str, dict[str, Any]] = {
            "streamed": {"job": "write_stream", "source": source, "target": self.target(_STREAMED)},
        }
        if self.kafka:
            target = {"kafka.bootstrap.servers": self.kafka, "topic": _STREAMED}
            jars = ",".join(kafka_jars("spark"))
            jobs["kafka"] = {"job": "write_kafka", "source": source, "target": target, "jars": jars}
        return jobs

    def target(self, topic: str, **more: str) -> dict[str, str]:
        patient = {"sendTimeoutMs": "60000", "rocketmq.requestTimeout": "30"}
        return {
            "nameServer": self.cluster.name_server,
            "topic": topic,
            "delivery": "exactlyOnce",
            **patient,
            **more,
        }

    def stored(self, topic: str) -> int:
        return sum(map(self.admin.max_offset, self.admin.fetch_subscribe_queues(topic)))

    def add_rows(self) -> None:
        messages = [
            Message(_SOURCE, b"%07d" % (self.sent + number) + _BODY, keys=[f"k{number % 100}"])
            for number in range(self.portion)
        ]
        config = ProducerConfig(name_server=self.cluster.name_server, send_timeout=60.0, request_timeout=30.0)
        with Producer(config) as producer:
            producer.send_many(messages)
        self.sent += self.portion

    def moment(self, driver: KilledDriver) -> Callable[[], bool]:
        """Return a moment that comes when something more has been seen of the run."""
        kind, end = self.chance.choice(_MOMENTS), time.monotonic() + _QUIET
        topic = _STREAMED if kind == "copied" else f"{_STREAMED}-staging"
        more = 0 if kind == "committed" else self.chance.randrange(self.portion // 2)

        def seen() -> int:
            return driver.batches("streamed") if kind == "committed" else self.stored_so_far(topic)

        before = seen()
        return lambda: seen() > before + more or time.monotonic() > end

    def stored_so_far(self, topic: str) -> int:
        """Return how many messages a topic has; 0 before it is made."""
        with suppress(TopicNotFoundError):
            return self.stored(topic)
        return 0

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
        print(f"{what} {self.counts[what]}: {self.stored(_STREAMED)} of {self.sent} rows", flush=True)


def main() -> int:
    """Run, print, and return 1 if a row is missing, or there twice."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.exact_sink", description=__doc__)
    for name, default in (
        ("kills", 3),
        ("broker-kills", 1),
        ("pauses", 1),
        ("executor-kills", 1),
        ("speculations", 1),
        ("portion", 4000),
        ("seed", 50),
        ("rate-rows", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help="default: %(default)s")
    for name, number in (("pause-seconds", 90.0), ("lock-seconds", LOCK_SECONDS)):
        parser.add_argument(f"--{name}", type=float, default=number, help="default: %(default)s")
    parser.add_argument("--kafka", action="store_true", help="write the same rows to Kafka, beside")
    asked = parser.parse_args()
    if asked.rate_rows:
        return _measure(asked.rate_rows)
    if asked.pauses and asked.lock_seconds < LOCK_SECONDS:
        parser.error(
            f"--pauses needs --lock-seconds {LOCK_SECONDS:.0f}, by which drivers measure their pauses"
        )
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores the first
        signal.signal(number, signal.default_int_handler)  # leave no process and no files behind
    os.environ["JDK_JAVA_OPTIONS"] = (
        f"-Drocketmq.broker.rebalance.lockMaxLiveTime={round(asked.lock_seconds * 1000)}"
    )
    with (
        tempfile.TemporaryDirectory(prefix="exact-sink-") as folder,
        LocalCluster(brokers=2) as cluster,
        Admin(ClientConfig(name_server=cluster.name_server, request_timeout=30.0)) as admin,
        running_kafka() if asked.kafka else nullcontext() as kafka,
    ):
        del os.environ["JDK_JAVA_OPTIONS"]
        for topic in (_SOURCE, _STREAMED):
            admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
        chance, address = random.Random(asked.seed), kafka.address if kafka else ""
        stage = _Stage(cluster, admin, Path(folder), chance, asked.portion, address)
        works: list[Callable[[_Stage], None]] = [_kill_driver] * asked.kills
        works += [_kill_broker] * asked.broker_kills
        works += [lambda stage: _pause_driver(stage, asked.pause_seconds)] * asked.pauses
        stage.chance.shuffle(works)
        for work in works:
            stage.add_rows()
            work(stage)
        errors = stage.driver().finish()
        wrong = sum(_break_tasks(stage, number, kill=True) for number in range(asked.executor_kills))
        wrong += sum(_break_tasks(stage, number, kill=False) for number in range(asked.speculations))
        return _judge(stage, errors, wrong)


def _kill_driver(stage: _Stage) -> None:
    driver = stage.driver()
    with driver.running():
        driver.await_true(stage.moment(driver))
        time.sleep(stage.chance.uniform(0.0, 1.0))
    stage.count("drivers killed")


def _kill_broker(stage: _Stage) -> None:
    """Kill a broker and start it again; the driver goes on, and is killed later."""
    driver, name = stage.driver(), stage.chance.choice(("broker-a", "broker-b"))
    with driver.running():
        driver.await_true(stage.moment(driver))
        stage.cluster.kill_server(name)
        time.sleep(stage.chance.uniform(0.0, 3.0))
        stage.cluster.start_server(name)
        stage.add_rows()
        driver.await_true(stage.moment(driver))
    stage.count("brokers killed")


def _pause_driver(stage: _Stage, seconds: float) -> None:
    """Stop a driver with all of its processes, start a second one, and let the first one continue."""
    first, second = stage.driver(), stage.driver()
    with first.running():
        first.await_true(stage.moment(first))
        group = first.group
        os.killpg(group, signal.SIGSTOP)
        try:
            with second.running():
                time.sleep(seconds)
                os.killpg(group, signal.SIGCONT)
                time.sleep(10.0)
        finally:
            os.killpg(group, signal.SIGCONT)
    stage.count("drivers stopped")


def _break_tasks(stage: _Stage, number: int, *, kill: bool) -> int:
    """Write a batch job of which one task stops half-way; return the number of wrong rows.

    Either its executor is killed, or it hangs until a second attempt, run beside it, has ended (speculation).
    """
    what = "killed" if kill else "speculated"
    folder, topic = stage.folder / f"{what}-{number}", f"{_TASKS}-{what}-{number}"
    folder.joinpath("job").mkdir(parents=True)
    stage.admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
    target = stage.target(topic, stampId=f"job {number}")
    with standalone_cluster(folder) as url:
        jobs = json.dumps({"job": {"job": "write", "source": {}, "target": target, "speculation": not kill}})
        command = [sys.executable, "-m", "tests.spark.killed_executors", url, str(folder), jobs]
        with (folder / "log").open("wb") as log:
            job = subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=log)
        held = folder / "job" / "held"
        while not held.exists():
            assert job.poll() is None, (folder / "log").read_text()[-4000:]
            time.sleep(0.05)
        began = time.monotonic()
        if kill:
            os.kill(int(held.read_text()), signal.SIGKILL)
            (folder / "job" / "go").touch()
        assert job.wait(600) == 0, (folder / "log").read_text()[-4000:]
        seconds = time.monotonic() - began
    seen = Counter(int(body[:6]) for body in _bodies(stage, topic))
    attempts = len([*folder.joinpath("job").glob("attempt-*")])
    print(
        f"tasks {what} {number + 1}: {attempts} attempts, {seconds:.0f} s after the first stopped", flush=True
    )
    is_broken = attempts > 1 and (kill or seconds < HELD_SECONDS)  # else Spark just tried again
    return _differences(topic, seen, 2 * ROWS, stage.stored(f"{topic}-staging")) + (not is_broken)


def _bodies(stage: _Stage, topic: str) -> list[bytes]:
    """Return what the Java client reads."""
    rows = JavaPeer.compiled().run("dump", stage.cluster.name_server, topic, timeout=600)
    return [bytes.fromhex(row["body"]) for row in rows]


def _differences(topic: str, seen: Counter[int], count: int, staged: int) -> int:
    twice, missing = sum(seen.values()) - len(seen), count - len(seen)
    print(f"{topic}: {count} rows, {twice} twice, {missing} missing, {staged} staged", flush=True)
    return twice + missing


def _judge(stage: _Stage, errors: dict[str, str | None], wrong: int) -> int:
    for name, error in errors.items():
        if error is not None:
            print(f"{name} ended with {error[:500]}")
    seen = Counter(int(body.removeprefix(b"new-")[:7]) for body in _bodies(stage, _STREAMED))
    wrong += _differences(_STREAMED, seen, stage.sent, stage.stored(f"{_STREAMED}-staging"))
    if stage.kafka:
        _differences("Spark's Kafka sink", _kafka_rows(stage), stage.sent, 0)
    return bool(wrong or any(errors.values()))


def _kafka_rows(stage: _Stage) -> Counter[int]:
    """Return how often each row is in the topic of Kafka."""
    from pyspark.sql import SparkSession

    jars = ",".join(kafka_jars("spark"))
    spark = SparkSession.builder.master("local[2]").config("spark.jars", jars).getOrCreate()
    options = {"kafka.bootstrap.servers": stage.kafka, "subscribe": _STREAMED}
    rows = spark.read.format("kafka").options(**options).load().select("value").collect()
    spark.stop()
    return Counter(int(row.value.removeprefix(b"new-")[:7]) for row in rows)


def _measure(rows: int) -> int:
    """Print how fast rows of 1 KB are written, plainly and exactly once, in turn."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with (
        LocalCluster(brokers=1) as cluster,
        Admin(ClientConfig(name_server=cluster.name_server)) as admin,
    ):
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        frame = spark.range(0, rows, 1, 4).selectExpr("rpad(id, 1024, '.') AS body").persist()
        frame.count()
        admin.create_topic("rate", read_queue_nums=4, write_queue_nums=4)
        rates: dict[str, list[float]] = {"plain": [], "exactly once": []}
        for turn in range(6):
            for name in rates:
                given = {"nameServer": cluster.name_server, "topic": "rate"}
                if name != "plain":
                    given |= {"delivery": "exactlyOnce", "stampId": f"turn {turn}"}
                began = time.monotonic()
                frame.write.format("rocketmq").options(**given).mode("append").save()
                rates[name].append(rows / (time.monotonic() - began))
        spark.stop()
    for name, found in rates.items():
        shown = ", ".join(f"{rate:.0f}" for rate in found)
        print(f"{name}: {statistics.median(found[1:]):.0f} rows a second ({shown})")
    ratio = statistics.median([exact / plain for plain, exact in zip(*rates.values(), strict=True)][1:])
    print(f"exactly once / plain: {ratio:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
