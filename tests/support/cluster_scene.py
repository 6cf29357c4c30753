"""A stage for tests of the local cluster: fake programs, the command as a child process, left-overs."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from rmqtools.cluster import LocalCluster
from rmqtools.cluster.processes import find_processes
from rmqtools.cluster.state import load_state
from tests.support.patience import PATIENCE, PROGRAM_PATIENCE

JAVA_17 = """case "$1" in -version) echo 'openjdk version "17.0.15" 2025-04-15' >&2; exit 0;; esac\n"""
PROGRAM = (sys.executable, "-c", "from rmqtools.cli import main; main()")
"""The command ``rmqtools`` as a child process."""

_ROUND = 0.02


def write_program(folder: Path, name: str, script: str) -> Path:
    """Put a shell script on the stage; its folder can be a PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    return program


def wait_until(true: Callable[[], object], *, seconds: float = PATIENCE) -> None:
    pause = Event()
    for _ in range(int(seconds / _ROUND)):
        if true():
            return
        pause.wait(_ROUND)
    raise AssertionError(f"{true} did not come true within {seconds} s")


def leftovers(directory: Path) -> list[str]:
    """Command lines of all living processes, servers or not, that name the directory."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(directory) in line and int(entry.name) != os.getpid():
            lines.append(line)
    return lines


def pid_of(cluster: LocalCluster, name: str) -> int:
    """Return the process of a server."""
    state = load_state(cluster.directory)
    assert state is not None
    return next(server.pid for server in state.servers if server.name == name)


@dataclass
class Scene:
    """A directory for a cluster, and the environment that the command ``rmqtools`` runs in."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        self.directory = self.root / "cluster"
        self.programs = self.root / "programs"

    def set(self, **variables: str) -> None:
        self.environment.update(variables)

    def only_programs(self, programs: Mapping[str, str]) -> None:
        """Leave nothing on PATH but these scripts, and the few tools that scripts need."""
        for tool in ("sh", "cat", "cp", "sleep", "mkdir"):
            self.programs.mkdir(parents=True, exist_ok=True)
            (self.programs / tool).symlink_to(f"/bin/{tool}")
        for name, script in programs.items():
            write_program(self.programs, name, script)
        self.environment.pop("JAVA_HOME", None)
        self.set(PATH=str(self.programs), HOME=str(self.root), RMQTOOLS_CACHE_DIR=str(self.root / "cache"))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start ``rmqtools cluster <arguments> --dir <directory>``."""
        command, *rest = arguments
        return subprocess.Popen(
            [*PROGRAM, "cluster", command, "--dir", str(self.directory), *rest],
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return ended(self.start(*arguments))

    def up_interrupted(self, number: signal.Signals) -> "subprocess.CompletedProcess[str]":
        """Send a signal to ``up`` as soon as a server process exists."""
        process = self.start("up")
        wait_until(lambda: find_processes(self.directory) or process.poll() is not None, seconds=PATIENCE)
        process.send_signal(number)
        return ended(process)


def ended(process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    """Wait for the end of a program."""
    out, error = process.communicate(timeout=PROGRAM_PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)
