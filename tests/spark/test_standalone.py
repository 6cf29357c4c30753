"""A cluster of Spark's own kind: a master and two workers as processes, from PySpark's jars."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import uuid
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from rmqtools import Message, Producer, ProducerConfig
from spark_connector import drop_duplicates
from tests.spark.killed_executors import ROWS
from tests.spark.programs import COMPILED, EXECUTORS, READ_AND_WRITE, WRITTEN, program
from tests.spark.spark_smoke import FOUND
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE, PATIENT_REQUEST, PATIENT_WRITE
from tests.support.reading import await_readable, stored
from tests.support.spark_processes import ROOT, SPARK_HOME, environment, run, standalone_cluster

pytestmark = pytest.mark.slow

_SECONDS = 800


@pytest.fixture(scope="module")
def standalone(tmp_path_factory):
    """The URL of a master with two workers of one core each."""
    with standalone_cluster(tmp_path_factory.mktemp("standalone")) as url:
        yield url


@pytest.fixture
def archive(tmp_path):
    """A zip file of the packages, as a user makes it for ``--py-files``; it holds no compiled module."""
    archive = tmp_path / "rmqtools.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in (
            path for name in ("rmqtools", "spark_connector") for path in (ROOT / name).rglob("*.py")
        ):
            packed.write(path, path.relative_to(ROOT))
    return archive


def test_executors_without_a_compiler_read_and_write_for_a_driver_with_the_compiled_module(
    standalone, local_cluster, make_topic
):
    text = program(
        "builder = builder.master(sys.argv[1]).config('spark.executorEnv.RMQTOOLS_PURE_PYTHON', '1')",
        EXECUTORS,
        "spark = builder.getOrCreate()",
        READ_AND_WRITE,
        COMPILED,
        "import spark_connector; print(*spark_connector.reader_ids(spark))",
    )
    arguments = [standalone, local_cluster.name_server, make_topic()]

    printed = run([sys.executable, "-c", text, *arguments], environment())

    assert printed == [*WRITTEN, "True False", "127.0.0.1@reader-0 127.0.0.2@reader-1"]


def test_a_package_that_is_not_installed_comes_with_py_files_and_register(
    standalone, archive, tmp_path, local_cluster, make_topic
):
    """An interpreter that has the libraries and not this package; a zip file brings it to the tasks."""
    script = tmp_path / "job.py"
    script.write_text(
        program(
            EXECUTORS,
            "builder = builder.config('spark.executorEnv.PYTHONPATH', sys.argv[4])",
            "spark = builder.getOrCreate()",
            "def file(_): import spark_connector; return spark_connector.__file__",
            "files = [file(0), *spark.sparkContext.parallelize(range(2), 2).map(file).collect()]",
            "print(['rmqtools.zip' in file for file in files])",
            "import spark_connector; spark_connector.register(spark)",
            READ_AND_WRITE,
            COMPILED,
        )
    )
    libraries = sysconfig.get_path("purelib")
    python = getattr(sys, "_base_executable", sys.executable)
    env = environment(PYSPARK_PYTHON=python, PYTHONPATH=libraries)
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", standalone, "--py-files", str(archive)]

    printed = run([*command, str(script), "-", local_cluster.name_server, make_topic(), libraries], env)

    assert printed == ["[True, True, True]", *WRITTEN, "False False"]


def test_the_smoke_set_passes_on_a_cluster(standalone, local_cluster, tmp_path):
    command = [sys.executable, "-m", "tests.spark.spark_smoke"]

    *_, printed = run(
        [*command, local_cluster.name_server, str(tmp_path), standalone], environment(), cwd=ROOT
    )

    found = json.loads(printed)
    assert {name: found[name] for name in FOUND} == FOUND
    assert found["limits"] == "8 rows"


@dataclass(frozen=True)
class Outcome:
    """What is left of the jobs: their folder, and the topics that two of them wrote to."""

    folder: Path
    topics: dict[str, str]

    def attempts(self, name: str) -> int:
        """How many attempts task 0 of a job had."""
        return sum(1 for _ in (self.folder / name).glob("attempt-*"))


class HeldJobs:
    """The program ``killed_executors``; its jobs stand still one after another."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._folder = folder

    def await_true(self, condition: Callable[[], object]) -> None:
        """Wait for something to be seen of the program, which must not end before."""
        wait_until(lambda: condition() or self._process.poll() is not None, seconds=_SECONDS)
        assert self._process.poll() is None, self._process.communicate()[1][-4000:]

    def await_held(self, name: str) -> None:
        """Wait until a job stands still."""
        self.await_true((self._folder / name / "held").exists)

    def kill_executor(self, name: str) -> None:
        """SIGKILL to the executor of the task that stands still."""
        os.kill(int((self._folder / name / "held").read_text()), signal.SIGKILL)

    def go(self, name: str) -> None:
        """Let a job go on."""
        (self._folder / name / "go").touch()

    def finish(self) -> None:
        """Wait for the end of all jobs."""
        _, error = self._process.communicate(timeout=_SECONDS)
        assert self._process.returncode == 0, error[-4000:]


@contextmanager
def held_jobs(master: str, folder: Path, jobs: dict[str, dict[str, object]]) -> Iterator[HeldJobs]:
    """Run jobs on a cluster for a block."""
    for name in jobs:
        (folder / name).mkdir()
    command = [sys.executable, "-m", "tests.spark.killed_executors", master, str(folder), json.dumps(jobs)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), text=True, stdout=pipe, stderr=pipe
    ) as process:
        try:
            yield HeldJobs(process, folder)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def outcome(standalone, local_cluster, admin, tmp_path_factory):
    """Jobs whose executors are killed while they read, while they write and in between; a task fails."""
    folder = tmp_path_factory.mktemp("killed")
    topics = {
        name: f"executors-{uuid.uuid4().hex[:12]}" for name in ("source", "killed", "failed", "between")
    }
    for topic in topics.values():
        admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
    server = {"nameServer": local_cluster.name_server}
    source = server | {"topic": topics["source"]}

    def target(name: str) -> dict[str, str]:
        return server | PATIENT_WRITE | {"topic": topics[name], "stamp": "true"}

    jobs: dict[str, dict[str, object]] = {
        "read": {"job": "read", "source": source},
        "killed": {"job": "write", "target": target("killed")},
        "failed": {"job": "write", "target": target("failed")},
        "between": {"job": "between", "source": source, "target": target("between")},
    }
    with Producer(ProducerConfig(name_server=local_cluster.name_server)) as producer:
        bodies = [b"%06d" % number + b"." * 1018 for number in range(2 * ROWS)]
        messages = [Message(topics["source"], body) for body in bodies]
        await_readable(admin, producer.send_many(messages, timeout=PATIENCE))
    with held_jobs(standalone, folder, jobs) as held:
        held.await_held("read")
        held.kill_executor("read")
        for name, end in (("killed", held.kill_executor), ("failed", held.go)):
            held.await_held(name)
            held.await_true(partial(stored, admin, topics[name]))
            end(name)
        held.await_held("between")
        with Producer(ProducerConfig(name_server=local_cluster.name_server)) as producer:
            later = producer.send(Message(topics["source"], b"999999 later"), timeout=PATIENT_REQUEST)
        await_readable(admin, [later])
        held.go("between")
        held.finish()
    return Outcome(folder, topics)


def numbers(frame):
    """How often a frame has each row's number."""
    rows = frame.selectExpr("CAST(substring(CAST(body AS STRING), 1, 6) AS INT) AS number").collect()
    return Counter(row.number for row in rows)


ONCE = Counter(range(2 * ROWS))


def test_an_executor_killed_while_it_reads_changes_no_row(outcome, spark):
    assert outcome.attempts("read") == 2
    assert numbers(spark.read.parquet(str(outcome.folder / "read" / "rows"))) == ONCE


@pytest.mark.parametrize("end", ["killed", "failed"])
def test_an_attempt_that_ends_after_it_has_sent_rows_repeats_rows_that_stamps_drop(outcome, read, end):
    written = read(topic=outcome.topics[end])

    assert outcome.attempts(end) == 2
    assert numbers(drop_duplicates(written)) == ONCE
    assert written.count() > len(ONCE)


def test_executors_killed_between_a_read_and_its_write_read_the_same_messages_again(outcome, read):
    """The rows that they held in memory were lost with them, and the topic had grown meanwhile."""
    assert numbers(read(topic=outcome.topics["between"])) == ONCE
