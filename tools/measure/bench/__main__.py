"""``python -m tools.measure.bench``: our side and other clients in turn, one table.

See docs/performance.md.
"""

import argparse
import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.support.java_peer import JavaPeer
from tools.measure.bench.areas import SIZES, Area, Side, all_areas, backlog, sink
from tools.measure.bench.broker import Broker, running_broker
from tools.measure.bench.large import fill_large, large_areas
from tools.measure.bench.peers import lines as peers
from tools.measure.bench.program import Program, Round, log_path
from tools.measure.bench.report import Line, line_of, print_table, write_json
from tools.measure.bench.scaling import print_scaling

_COMPILED = ("java", "spark")  # programs that get faster
_JVM_OPTIONS = ("-Xms512m", "-Xmx1g", "-XX:+UseG1GC", "-Drocketmq.client.logLevel=WARN")
_RISING = 1.05  # a rate that is higher than all before by this factor has not stopped rising
_READING = (
    "pull",
    "arrow",
    "objects",
    "count",
    "push",
    "poll",
    "simple",
)  # works that read the whole backlog
_serials = itertools.count(1)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Duration of a bench."""

    rounds: int
    seconds: float
    total: int
    warm_up: int  # rounds at most
    quick: bool


class Bench:
    """The programs of a bench, and the broker they use."""

    def __init__(self, broker: Broker, plan: Plan, stack: ExitStack) -> None:
        self._broker = broker
        self._plan = plan
        self._stack = stack
        self._programs: dict[str, Program] = {}
        self._commands = {**_commands(broker, stack), **peers.peer_commands(broker, stack)}
        self._best: dict[str, float] = {}  # rate of a warm side, by what it does

    def run(self, area: Area) -> Line:
        """Warm up, then take turns."""
        if area.broker:
            self._broker.set(**area.broker)
        sides = (area.ours, *area.theirs)
        for side in sides:
            self._warm(side)
        rounds: list[list[Round]] = [[] for _ in sides]
        for _ in range(self._plan.rounds):
            for number, side in enumerate(sides):
                rounds[number].append(self._round(side))
        if area.broker:
            self._broker.set(**dict.fromkeys(area.broker, "32"))
        return line_of(area, rounds)

    def _warm(self, side: Side) -> None:
        """Until the rate rises no more; where nothing is compiled, once."""
        key = f"{side.program} {side.work} {side.settings}"
        if key in self._best:
            return
        rates = [self._round(side).rate]
        while side.program in _COMPILED and len(rates) < self._plan.warm_up:
            rates.append(self._round(side).rate)
            if len(rates) >= 3 and max(rates[-2:]) < max(rates[:-2]) * _RISING:
                break
        self._best[key] = max(rates)

    def _round(self, side: Side) -> Round:
        settings = {name: _fresh(value) for name, value in side.settings.items()}
        if side.work == "send":
            settings["seconds"] = self._plan.seconds
            os.sync()  # what the round before wrote is on the disk: it slows this one down no more
        if settings.get("kind") == "pop":
            self._broker.let_pop(str(settings["topic"]), str(settings["group"]))
        before = self._broker.stored(side.sends_to) if side.sends_to else 0
        program = self._program(side.program)
        done = program.ask(side.work, **settings)
        done.more.setdefault("resident_mb", program.resident_bytes() / 2**20)
        self._tell_failures(side, done)
        if side.sends_to:
            stored = self._broker.await_stored(side.sends_to, before + done.count) - before
            if stored < done.count:
                raise RuntimeError(f"{side}: {done.count} acknowledged, {stored} stored")
            done.more["stored"] = stored
        elif side.work in _READING:
            total = side.reads or int(side.settings.get("total", self._plan.total))
            if done.count != total:
                raise RuntimeError(f"{side}: {done.count} of {total} messages read")
        return done

    def _tell_failures(self, side: Side, done: Round) -> None:
        """Say that sends have failed: brokers refuse all on a full disk."""
        if failed := int(done.more.get("failed", 0)):
            disk = shutil.disk_usage(self._broker.cluster.directory)
            print(
                f"  {side.program}: {failed} of {failed + done.count} sends of a round failed; "
                f"the disk is {disk.used / (disk.used + disk.free):.0%} full, and brokers take up to 90 %",
                flush=True,
            )

    def _program(self, name: str) -> Program:
        if name not in self._programs:
            program = Program(self._commands[name](), broker_pid=self._broker.pid, log=log_path(name))
            self._stack.callback(log_path(name).unlink, missing_ok=True)
            self._programs[name] = self._stack.enter_context(program)
        return self._programs[name]


def _fresh(value: object) -> object:
    """Make a new group for every round."""
    return value.replace("@", f"{time.time_ns()}-{next(_serials)}") if isinstance(value, str) else value


def _commands(broker: Broker, stack: ExitStack) -> Mapping[str, Callable[[], list[str]]]:
    """Return the commands of our own programs and of the Java client's."""

    def java() -> list[str]:
        peer = JavaPeer.compiled(Path(__file__).with_name("java"), jvm_options=_JVM_OPTIONS)
        home = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        return peer.command(home, "Bench", broker.name_server)

    return {
        "ours": lambda: [sys.executable, "-m", "tools.measure.bench.ours", broker.name_server],
        "spark": lambda: [sys.executable, "-m", "tools.measure.bench.ours_spark", broker.name_server],
        "java": java,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 0 if every bar is met."""
    asked = _parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leave no broker and no files behind
    plan = Plan(
        rounds=asked.rounds,
        seconds=asked.seconds,
        total=asked.messages,
        warm_up=asked.warm_up,
        quick=asked.quick,
    )
    every = (*all_areas(plan.total), *peers.peer_areas(), *large_areas())
    areas = [area for area in every if _is_asked(area, asked)]
    lines: list[Line] = []
    with running_broker() as broker, ExitStack() as stack:
        for size in SIZES:
            broker.fill(backlog(size), size=size, count=plan.total)
            broker.make_topic(sink(size))
        broker.make_topic("bench-latency")
        # A broker that has written 40 % of the memory since gives 8 messages a pull instead of 32: what a
        # group reads is written right before it, and large bodies are sent last.
        fill = {"large": fill_large, "peers": peers.fill_backlogs}
        bench = Bench(broker, plan, stack)
        try:
            for area in areas:
                if area.group in fill:
                    fill.pop(area.group)(broker)
                lines.append(bench.run(area))
                print_table(lines[-1:], with_head=len(lines) == 1)
                if area.writes_much:
                    broker.drop_sent()
        finally:
            write_json(asked.json, plan, lines)
    if asked.scaling:
        print_scaling(largest_backlog=asked.largest_backlog)
    return 0 if all(line.is_met is not False for line in lines) else 1


def _is_asked(area: Area, asked: argparse.Namespace) -> bool:
    if asked.line and not any(text in area.name for text in asked.line):
        return False
    if asked.groups:
        return area.group in asked.groups
    return area.quick or not asked.quick


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.measure.bench", description=__doc__)
    parser.add_argument(
        "groups", nargs="*", help="read objects push disk latency send linger batch large spark stream peers"
    )
    parser.add_argument("--line", action="append", help="only lines whose names contain this; several: any")
    parser.add_argument("--quick", action="store_true", help="the main areas only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round of sends")
    parser.add_argument("--messages", type=int, default=300_000, help="of a backlog")
    parser.add_argument("--warm-up", type=int, default=10, help="rounds of the Java client at most")
    parser.add_argument("--scaling", action="store_true", help="then the scaling runs")
    parser.add_argument("--largest-backlog", type=int, default=1_000_000, help="of the scaling runs")
    parser.add_argument("--json", type=Path, default=Path(".build/bench"), help="directory of the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
