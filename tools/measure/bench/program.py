"""A program under test: it lives for the whole bench and is asked for one round of work at a time."""

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, TypeAlias

from tools.measure.bench.machine import machine_seconds, resident_bytes, tree_seconds

_PATIENCE = 180.0  # seconds for one round
Work: TypeAlias = dict[str, str]
Result: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Round:
    """Figures of one round.

    Attributes:
        count: messages.
        seconds: as the program took it.
        cpu: seconds of the program, everything below it included.
        broker_cpu: the same of the broker.
        others: processors that were busy with something else, 0 to all.
        more: what else the program said.
    """

    count: int
    seconds: float
    cpu: float
    broker_cpu: float
    others: float
    more: dict[str, float]

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.count / self.seconds if self.seconds else 0.0

    @property
    def cpu_us(self) -> float:
        """The program's CPU, microseconds a message."""
        return self.cpu / self.count * 1e6 if self.count else 0.0

    @property
    def broker_cpu_us(self) -> float:
        """The broker's."""
        return self.broker_cpu / self.count * 1e6 if self.count else 0.0


class Program:
    """A child process that answers a line ``work name=value ...`` with a line of JSON."""

    def __init__(self, command: Sequence[str], *, broker_pid: int, log: Path) -> None:
        self._command = command
        self._broker_pid = broker_pid
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, work: str, **settings: Any) -> Round:
        """Have one round done.

        Raises:
            RuntimeError: the program has ended, or takes too long.
        """
        before = (machine_seconds(), tree_seconds(os.getpid()), *self._cpu(), _now())
        line = " ".join([work, *(f"{name}={value}" for name, value in settings.items())])
        answer = json.loads(self._exchange(line))
        after = (machine_seconds(), tree_seconds(os.getpid()), *self._cpu(), _now())
        machine, ours, cpu, broker_cpu, elapsed = (b - a for a, b in zip(before, after, strict=True))
        return Round(
            count=int(answer.pop("count")),
            seconds=answer.pop("seconds"),
            cpu=cpu,
            broker_cpu=broker_cpu,
            others=max(0.0, (machine - ours) / elapsed),
            more=answer,
        )

    def resident_bytes(self) -> int:
        """Return the most memory it has held so far, without its children."""
        return resident_bytes(self._process.pid)

    def _cpu(self) -> tuple[float, float]:
        return tree_seconds(self._process.pid), tree_seconds(self._broker_pid)

    def _exchange(self, line: str) -> str:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(line + "\n")
        stdin.flush()
        while answer := _line_of(stdout):
            if answer.startswith("{"):
                return answer
        said = self._log.read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{self._command[:3]} gave no answer to {line!r}: {said}")


def serve(works: Mapping[str, Callable[[Work], Result]]) -> None:
    """In the program: answer each line of the input."""
    for line in sys.stdin:
        name, *settings = line.split()
        result = works[name](dict(setting.split("=", 1) for setting in settings))
        print(json.dumps(result), flush=True)


def _line_of(stdout: IO[str]) -> str:
    ready, _, _ = select.select([stdout], [], [], _PATIENCE)
    return stdout.readline() if ready else ""


def _now() -> float:
    return os.times().elapsed


def log_path(name: str) -> Path:
    """Return a file for what a program says on its standard error."""
    return Path(tempfile.gettempdir(), f"rmqtools-bench-{os.getpid()}-{name}.log")
