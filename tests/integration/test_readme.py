"""Every command of README.md runs as written, and its programs in one process, in a clean environment.

The blocks are taken from the file. What is not run here is listed with the reason; a new block that is
neither run nor listed fails.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from rmqtools.cluster.jars import cache_root
from tests.support.patience import PROGRAM_PATIENCE

pytestmark = [pytest.mark.broker, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PORT = 9876
NOT_RUN = {  # the beginning of a command: why
    "pip install": "the package is installed here",
}
MAY_FAIL = {"rmqtools group check": 1}  # its exit code while members have not followed the pin yet


@dataclass(frozen=True)
class Block:
    """One block of code of the README."""

    language: str
    text: str

    def commands(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip()]


def blocks() -> list[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return [Block(*each) for each in found]


def is_left_out(text: str) -> bool:
    return any(text.startswith(beginning) for beginning in NOT_RUN)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own, the commands of this environment, and nothing of ours."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG") if name in os.environ}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    cache = str(cache_root())  # downloads are not what is tested here
    return kept | {"HOME": str(tmp_path), "PATH": path, "RMQTOOLS_CACHE_DIR": cache}


def run(command: list[str], environment: dict[str, str], cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        env=environment,
        cwd=cwd,
        input="\n",
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE,
        check=False,
    )


def run_shell(block: Block, environment: dict[str, str], cwd: Path) -> None:
    for line in block.commands():
        words = shlex.split(line, comments=True)
        if words[0] == "export":
            environment |= dict([words[1].split("=", 1)])
            continue
        if is_left_out(line):
            continue
        ended = run(["bash", "-o", "pipefail", "-c", line], environment, cwd)
        allowed = {0, *(code for name, code in MAY_FAIL.items() if line.startswith(name))}
        assert ended.returncode in allowed, f"{line}\n{ended.stdout}{ended.stderr}"


@contextmanager
def pinned_member(environment: dict[str, str]) -> Iterator[None]:
    """The member on 192.168.0.6 of which the README speaks."""
    options = ["--ip", "192.168.0.6", "--topic", "Orders", "--group", "staging"]
    command = [sys.executable, "-m", "examples.staging_pinned.member", *options]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        look = "rmqtools group check staging --within 60"  # until it is a member and owns the queues
        assert run(["bash", "-c", look], environment, ROOT).returncode == 0
        yield
    finally:
        process.terminate()
        process.wait(60)


def test_every_block_runs_as_written_and_in_order(environment: dict[str, str], tmp_path: Path) -> None:
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", PORT)) == 0:
            pytest.skip(f"port {PORT} of the README is in use on this machine")
    program = "\n".join(block.text for block in blocks() if block.language == "python")
    started, *later = [block for block in blocks() if block.language != "python"]
    try:
        run_shell(started, environment, tmp_path)
        ended = run([sys.executable, "-c", program], environment, tmp_path)  # all of it in one process
        assert ended.returncode == 0, f"{program}\n{ended.stderr}"
        assert "order 1" in ended.stdout  # Spark shows it
        for block in later:
            with pinned_member(environment) if "pin set" in block.text else nullcontext():
                run_shell(block, environment, tmp_path)
    finally:
        run(["rmqtools", "cluster", "down"], environment, tmp_path)


def test_what_is_not_run_is_in_the_readme() -> None:
    texts = [line for block in blocks() for line in [block.text, *block.commands()]]

    assert [name for name in NOT_RUN if not any(text.startswith(name) for text in texts)] == []
