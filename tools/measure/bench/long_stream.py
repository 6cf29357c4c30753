"""``python -m tools.measure.bench.long_stream``: what a stream of ten minutes holds, early and late.

Rows are sent at a fixed rate by another process; a query reads them into the sink noop. At each given minute
the processes below the driver are counted: their connections to the name server and the brokers, and their
memory, in which pages that several processes share count in parts (PSS). The lag over time goes to an SVG.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from rmqtools import Admin, ClientConfig, Producer, ProducerConfig, arrow
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster import LocalCluster
from spark_connector import LagHistory
from tools.measure.bench.machine import tree

_QUEUES = 8
_TOPIC = "long"
_PORTIONS = 10  # a second
_ESTABLISHED = "01"
_NOT_SPARK = ("org.apache.rocketmq", "rmqtools/cluster", "multiprocessing")  # the servers, the load
_ROLES = (  # what a process is, by a word of its command line
    ("java", "Spark (JVM)"),
    ("streaming_source_runner", "offsets and plans of the stream"),
    ("lookup_data_sources", "asked once for names of sources"),
    ("create_data_source", "asked once for this source"),
    ("plan_data_source_read", "asked once for the reader"),
    ("pyspark.worker", "tasks and their parent process"),
)


class Held(NamedTuple):
    """Sockets and memory of processes of one role."""

    role: str
    processes: int
    connections: int
    megabytes: float


def send(name_server: str, rate: int) -> None:
    """Send rows of 100 bytes at this rate, until killed."""
    rows = rate // _PORTIONS
    portion = pa.record_batch({"body": pa.array([b"x" * 100] * rows, pa.binary())})
    with Producer(ProducerConfig(name_server=name_server, group="load")) as producer:
        began, sent = SYSTEM_CLOCK.monotonic(), 0
        while True:
            arrow.send_batches(producer, [portion], topic=_TOPIC)
            sent += 1
            Event().wait(max(0.0, began + sent / _PORTIONS - SYSTEM_CLOCK.monotonic()))


def held(root: int, ports: set[int]) -> list[Held]:
    """Count the processes below ``root``, and itself, by role."""
    inodes = _connected(ports)
    counts: dict[str, list[float]] = {}
    for pid in tree(root):
        try:
            if (role := "Python driver" if pid == root else _role(pid)) is None:
                continue
            connections = len(inodes & set(_sockets(pid)))
            share = _proportional_kilobytes(pid)
        except OSError:  # it has ended
            continue
        sums = counts.setdefault(role, [0, 0, 0])
        for place, value in enumerate((1, connections, share / 1024)):
            sums[place] += value
    return [Held(role, int(sums[0]), int(sums[1]), sums[2]) for role, sums in sorted(counts.items())]


def _connected(ports: set[int]) -> set[str]:
    """Inodes of connections whose other end has one of these ports."""
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path("/proc/net", table).read_text().splitlines()[1:]
    ]
    return {row[9] for row in rows if row[3] == _ESTABLISHED and int(row[2].rpartition(":")[2], 16) in ports}


def _sockets(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:  # it has been closed
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def _proportional_kilobytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _role(pid: int) -> str | None:
    line = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    if any(word in line for word in _NOT_SPARK):
        return None
    return next((role for word, role in _ROLES if word in line), line[:60])


def main() -> None:
    """Run the stream and print a table for each minute that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=20_000, help="rows a second")
    parser.add_argument("--minutes", type=float, nargs="+", default=[2, 10], help="when to look")
    parser.add_argument("--plot", type=Path, default=Path(".build/long-stream-lag.svg"))
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spawning = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, LocalCluster() as cluster:
        address = cluster.name_server
        with Admin(ClientConfig(name_server=address)) as admin:
            admin.create_topic(_TOPIC, read_queue_nums=_QUEUES, write_queue_nums=_QUEUES)
        ports = {int(each.rpartition(":")[2]) for each in (address, *cluster.broker_addrs.values())}
        load = spawning.Process(target=send, args=(address, given.rate), daemon=True)
        load.start()
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")  # stopping interrupts tasks
        history = LagHistory()
        spark.streams.addListener(history)
        source = spark.readStream.format("rocketmq").options(nameServer=address, topic=_TOPIC)
        writer = source.load().writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(processingTime="1 second").start()
        began = SYSTEM_CLOCK.monotonic()
        for minute in given.minutes:
            query.awaitTermination(max(1, int(began + 60 * minute - SYSTEM_CLOCK.monotonic())))
            if not query.isActive:
                raise SystemExit(f"the query has ended: {query.exception()}")
            print(f"minute {minute:g}, machine load {os.getloadavg()[0]:.1f}")
            print(f"{'':32}{'processes':>10}{'connections':>13}{'PSS MB':>8}")
            for each in (rows := held(os.getpid(), ports)):
                print(f"{each.role:32}{each.processes:10}{each.connections:13}{each.megabytes:8.0f}")
            sums = (
                sum(each.processes for each in rows),
                sum(each.connections for each in rows),
                sum(each.megabytes for each in rows),
            )
            print("{:32}{:10}{:13}{:8.0f}".format("all", *sums))
            progress = query.lastProgress
            print(
                f"{progress.processedRowsPerSecond:,.0f} rows/s processed, "
                f"{sum(history.points[-1].lag.values()):,} waiting, batch {progress.batchId}",
                flush=True,
            )
        query.stop()
        history.plot(given.plot)
        print(f"lag over time: {given.plot}")
        spark.stop()
        load.kill()
        load.join()


if __name__ == "__main__":
    main()
