"""``python -m tools.measure.bench.spark_kafka``: Spark on RocketMQ beside Spark on Kafka, in turn.

Each side has a broker with eight queues, and one Spark of two threads for the reads and writes. For a first
action it has a new process: the time from the first use of the format in a new session to the end of a count.
The line below it is an empty source in Python, without a server and with as many partitions. Written rows
are compared with the broker's offsets. Bars are for medians of rates and seconds, so they need a quiet
machine; the table shows how many processors others took.
"""

import argparse
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.support.pyspark_versions import ROOT, python_with
from tools.measure.bench.broker import running_broker
from tools.measure.bench.program import Program, Round, log_path
from tools.measure.bench.report import BUSY, machine
from tools.measure.bench.spark_kafka.kafka import VERSION, jars, running_kafka

PYSPARK: Final = "4.2.0"  # the Kafka source is of the same version: spark.lock
BARS: Final = {"read": 1.3, "write": 1.0, "write, BatchCQ": 1.0}
FIRST_ACTION_BAR: Final = 1.0  # seconds more than Kafka's, at most
WARM_UP: Final = 3  # rounds of reads and writes that do not count: JVMs compile
BACKLOG, SINK, BATCHES, FEW = "bench-spark", "bench-spark-sink", "bench-spark-batches", "bench-spark-few"
TOPICS: Final = {"read": BACKLOG, "write": SINK, "write, BatchCQ": BATCHES}
_HEAD = ("", "ours", "Kafka", "ratio", "CPU us", "Kafka", "broker us", "Kafka", "others", "bar", "met")
_FORM = "{:<24} {:>9} {:>9} {:>6} {:>7} {:>7} {:>9} {:>7} {:>6} {:>8} {:>4}"


@dataclass(frozen=True)
class Side:
    """Programs of one side; ``pid`` is its broker's."""

    name: str
    address: str
    pid: int
    jars: str = ""

    @contextmanager
    def program(self, python: str) -> Iterator[Program]:
        """Start a new process with a new session."""
        command = [python, "-m", "tools.measure.bench.spark_kafka.side", self.name, self.address, self.jars]
        log = log_path(f"spark-{self.name}")
        try:
            with Program(command, broker_pid=self.pid, log=log) as program:
                program.ask("start")
                yield program
        finally:
            log.unlink(missing_ok=True)


@dataclass(frozen=True)
class Line:
    """A line of the table; ``rounds`` of both sides, ours first, or, if not ``is_ours``, the empty source."""

    what: str
    rounds: tuple[list[Round], list[Round]]
    is_ours: bool = True

    def median(self, side: int, what: str) -> float:
        """Return the median of a number of a side's rounds."""
        return float(statistics.median(getattr(one, what) for one in self.rounds[side]))

    @property
    def is_met(self) -> bool:
        """True if the bar is."""
        if self.what in BARS:
            return self.median(0, "rate") >= BARS[self.what] * self.median(1, "rate")
        return self.median(0, "seconds") <= self.median(1, "seconds") + FIRST_ACTION_BAR

    def cells(self) -> tuple[str, ...]:
        """As the table shows it. A first action has CPU seconds, not microseconds a row."""
        rates = self.what in BARS
        names = ("rate", "cpu_us", "broker_cpu_us") if rates else ("seconds", "cpu", "broker_cpu")
        (ours, theirs), *cpus = ([self.median(side, name) for side in (0, 1)] for name in names)
        others = statistics.median(one.others for some in self.rounds for one in some)
        return (
            f"{self.what}, {'rows/s' if rates else 's'}",
            *(f"{value:,.0f}" if rates else f"{value:.2f}" for value in (ours, theirs)),
            f"{ours / theirs:.2f}",
            *(f"{value:.2f}" for pair in cpus for value in pair),
            f"{others:.2f}",
            f">={BARS[self.what]:g}" if rates else f"<=+{FIRST_ACTION_BAR:g} s",
            ("yes" if self.is_met else "NO") + ("*" if others > BUSY else ""),
        )


def rates(sides: tuple[Side, Side], python: str, asked: argparse.Namespace) -> list[Line]:
    """Measure reads and writes of one session each; the side that begins changes from round to round."""
    lines = {what: Line(what, ([], [])) for what in BARS}
    with ExitStack() as stack:
        programs = [stack.enter_context(side.program(python)) for side in sides]
        for program in programs:
            _ask(program, "write", BACKLOG, asked.messages, asked.size)
        for turn in range(WARM_UP + asked.rounds):
            for what, topic in TOPICS.items():
                for number in (0, 1) if turn % 2 else (1, 0):
                    work = what.partition(",")[0]
                    done = _ask(programs[number], work, topic, asked.messages, asked.size)
                    if turn >= WARM_UP:
                        lines[what].rounds[number].append(done)
    return list(lines.values())


def first_actions(sides: tuple[Side, Side], python: str, asked: argparse.Namespace) -> list[Line]:
    """Measure counts of few messages, each in a new process."""
    for side in sides:
        with side.program(python) as program:
            _ask(program, "write", FEW, asked.few, asked.size)
    ours, theirs = sides
    compared = (ours, Side("empty", "", ours.pid), theirs)
    rounds: tuple[list[Round], ...] = ([], [], [])
    for turn in range(asked.rounds + 1):  # the first does not count
        for number in (0, 1, 2) if turn % 2 else (2, 1, 0):
            with compared[number].program(python) as program:
                done = _ask(program, "count", FEW, asked.few, asked.size)
            if turn:
                rounds[number].append(done)
    return [
        Line("first action", (rounds[0], rounds[2])),
        Line("  empty source", (rounds[1], rounds[2]), is_ours=False),
    ]


def _ask(program: Program, what: str, topic: str, count: int, size: int) -> Round:
    os.sync()  # what was written before is on the disk
    done = program.ask(what, topic=topic, total=count, size=size, inner_batches=topic == BATCHES)
    if done.count != count:
        raise RuntimeError(f"{what} of {topic}: {done.count} of {count} rows")
    return done


WORKS: Final = {"rates": rates, "first": first_actions}


def main() -> int:
    """Print the table; 0 if every bar is met."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.bench.spark_kafka", description=__doc__)
    parser.add_argument("--only", choices=WORKS, help="half of the table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=200_000, help="of a read and of a write")
    parser.add_argument("--size", type=int, default=1024, help="bytes of a body")
    parser.add_argument("--few", type=int, default=1000, help="messages of a first action")
    parser.add_argument("--json", type=Path, help="a file for all rounds")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leave no broker and no files behind
    python = python_with(PYSPARK)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as installed ones are
    os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".build" / "bytecode")
    load = os.getloadavg()
    with running_broker() as rocketmq, running_kafka() as kafka:
        for topic in (BACKLOG, SINK, FEW):
            rocketmq.make_topic(topic)
        rocketmq.make_topic(BATCHES, queue_type="BatchCQ")
        ours = Side("rocketmq", rocketmq.name_server, rocketmq.pid)
        theirs = Side("kafka", kafka.address, kafka.pid, ":".join(jars("spark")))
        lines: list[Line] = []
        print(_FORM.format(*_HEAD))
        for work in [asked.only] if asked.only else WORKS:
            lines += (done := WORKS[work]((ours, theirs), python, asked))
            for line in done:
                print(_FORM.format(*line.cells()), flush=True)
    print(
        "CPU: microseconds a row of all of Spark's processes, and of the broker; of a first action: seconds"
    )
    print(f"PySpark {PYSPARK}, Kafka {VERSION}, {asked}, load before {load[0]:.2f}, {time.strftime('%F %T')}")
    print(json.dumps(machine()))
    if asked.json:
        _write_json(asked.json, lines)
    return 0 if all(line.is_met for line in lines if line.is_ours) else 1


def _write_json(path: Path, lines: list[Line]) -> None:
    """Write all rounds as the bench does."""
    documents = [
        {"area": line.what, "sides": [{"rounds": [asdict(one) for one in some]} for some in line.rounds]}
        for line in lines
    ]
    path.write_text(json.dumps({"machine": machine(), "lines": documents}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
