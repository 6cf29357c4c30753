"""A driver with jobs of ``killed_jobs``, and what can be seen of them from outside."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rmqtools import Admin
from tests.support.cluster_scene import wait_until

ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 600


class KilledDriver:
    """Runs of one set of jobs, each in a driver of its own."""

    def __init__(self, folder: Path, jobs: Mapping[str, Mapping[str, Any]], admin: Admin) -> None:
        self.folder = folder
        self._jobs = jobs
        self._admin = admin
        self._process: subprocess.Popen[str] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """A run; with all processes that it started, it is killed (SIGKILL) at the end of the block."""
        command = [sys.executable, "-m", "tests.spark.killed_jobs", str(self.folder), json.dumps(self._jobs)]
        with (self.folder / "driver.log").open("ab") as log:
            process: Any = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        self._process = process
        try:
            yield
        finally:
            with suppress(ProcessLookupError):  # all of them have ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
            process.stdout.close()

    @property
    def group(self) -> int:
        """The process group of the run."""
        assert self._process is not None
        return self._process.pid

    def await_true(self, condition: Callable[[], object]) -> None:
        """Wait for something to be seen of the run, which must not end before.

        Raises:
            AssertionError: it ended, or nothing was seen for minutes; with the end of its log.
        """
        assert self._process is not None
        process = self._process
        wait_until(lambda: condition() or process.poll() is not None, seconds=_SECONDS)
        assert process.poll() is None, self.log

    def finish(self) -> dict[str, str | None]:
        """Run all jobs to their end; return the error of each."""
        (self.folder / "last").touch()
        with self.running():
            assert self._process is not None
            out, _ = self._process.communicate(timeout=_SECONDS)
            assert self._process.returncode == 0, self.log
        errors: dict[str, str | None] = json.loads(out.splitlines()[-1])
        return errors

    def stored(self, name: str) -> int:
        """How many messages the target of a job has."""
        topic = self._jobs[name]["target"]["topic"]
        return sum(self._admin.max_offset(queue) for queue in self._admin.fetch_subscribe_queues(topic))

    def batches(self, name: str, *, kind: str = "commits") -> int:
        """How many micro-batches a stream has ended; or begun: ``offsets``."""
        folder = self.folder / name / "checkpoint" / kind
        return sum(file.name.isdigit() for file in folder.iterdir()) if folder.exists() else 0

    def is_writing(self, name: str) -> bool:
        """Return whether a task has begun a file of ``rows``."""
        try:
            return any((self.folder / name / "rows").glob("_temporary/**/*.parquet"))
        except FileNotFoundError:  # the job has ended meanwhile, and Spark has removed the folder
            return False

    @property
    def log(self) -> str:
        return (self.folder / "driver.log").read_text()[-4000:]
