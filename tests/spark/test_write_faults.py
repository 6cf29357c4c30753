"""Rows written by Spark while a broker dies and comes back: all are there, no more twice than was said."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rmqtools import Admin, Client, ClientConfig
from tests.spark.streams import await_true
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE, PROGRAM_PATIENCE
from tests.support.reading import read_all

pytestmark = [pytest.mark.spark, pytest.mark.docker]

ROOT = Path(__file__).resolve().parents[2]
LOGGING = "import logging; logging.basicConfig(level=logging.INFO, format='LOG %(message)s')\n"
COUNTS = re.compile(r"LOG (\w+) .*?acked=(\d+) .*?unknown=(\d+) ")


@dataclass(frozen=True)
class Told:
    """A line about a task or a write, with its counts."""

    event: str
    acked: int
    unknown: int


class PacedWrite:
    """The program, running."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._folder = folder

    def await_mark(self, mark: int) -> None:
        reached = self._folder / f"reached-{mark}"
        wait_until(lambda: reached.exists() or self._process.poll() is not None, seconds=PATIENCE)
        assert reached.exists(), self._process.communicate()

    def go(self, mark: int) -> None:
        (self._folder / f"go-{mark}").touch()

    def told(self) -> list[Told]:
        """What was logged, when it has ended well."""
        out, error = self._process.communicate(timeout=PROGRAM_PATIENCE)
        assert (self._process.returncode, out.split()) == (0, ["saved"]), error[-5000:]
        found = [Told(event, int(acked), int(unknown)) for event, acked, unknown in COUNTS.findall(error)]
        assert sum(one.event == "write_committed" for one in found) == 1, error[-5000:]
        return found


@contextmanager
def paced_write(folder: Path, options: dict[str, str], *arguments: str) -> Iterator[PacedWrite]:
    (folder / "sitecustomize.py").write_text(LOGGING)  # every Python process of Spark logs
    command = [sys.executable, "-m", "tests.spark.paced_write", json.dumps(options), "--folder", str(folder)]
    environment = os.environ | {
        "PYTHONPATH": f"{folder}:{ROOT}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield PacedWrite(process, folder)
        finally:
            process.kill()


def stored_numbers(name_server: str, topic: str, rows: int) -> Counter[int]:
    """How often each row is in the topic, once all are there."""
    config = ClientConfig(name_server=name_server, request_timeout=10.0)
    with Client(config) as client, Admin(client) as admin:
        found: Counter[int] = Counter()

        def all_there() -> bool:
            found.clear()
            found.update(int(message.body) for message in read_all(client, admin, topic))
            return len(found) == rows

        await_true(all_there, f"{rows} rows in {topic}, not {len(found)}", timeout=PATIENCE)
        return found


def write_while_a_broker_dies(cluster, folder: Path, topic: str, rows: int, *arguments: str) -> list[Told]:
    options = {"nameServer": cluster.name_server, "topic": topic, "stamp": "true", "sendTimeoutMs": "10000"}
    with paced_write(folder, options, "--rows", str(rows), *arguments) as write:
        write.await_mark(1)
        cluster.kill("broker-b")
        write.go(1)
        write.await_mark(2)
        cluster.start("broker-b")
        write.go(2)
        return write.told()


@pytest.mark.parametrize(
    ("rows", "row_bytes"),
    [(50_000, 400), pytest.param(1_000_000, 100, marks=pytest.mark.slow)],
    ids=["50k", "million"],
)
def test_with_a_broker_killed_and_back_no_task_fails_and_every_row_is_there(
    faulty_cluster, new_topic, tmp_path, rows, row_bytes
):
    topic = new_topic()

    every = write_while_a_broker_dies(faulty_cluster, tmp_path, topic, rows, "--row-bytes", str(row_bytes))

    (told,) = [one for one in every if one.event == "write_committed"]
    stored = stored_numbers(faulty_cluster.name_server, topic, rows)
    assert told.acked == rows
    assert set(stored) == set(range(rows))
    assert sum(stored.values()) - rows <= told.unknown
