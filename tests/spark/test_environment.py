"""Findings of the doctor, in an environment that is not activated and in one that is."""

import os
import subprocess
import sys

import pytest

from tests.spark.streams import fill
from tests.support.patience import PROGRAM_PATIENCE


@pytest.fixture
def not_activated(tmp_path):
    """The environment of ``.venv/bin/python job.py``: python3 on the path is the system's."""
    (tmp_path / "python3").symlink_to(sys._base_executable)  # type: ignore[attr-defined]  # not in typeshed
    own = {name: os.environ[name] for name in ("JAVA_HOME", "PYTHONPATH") if name in os.environ}
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return {
        **own,
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": options,
    }


def run(environment, *command):
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_PATIENCE,
        cwd="/",
    )


@pytest.mark.slow  # a Spark of its own; its unit tests
def test_the_doctor_says_what_is_wrong(not_activated, tmp_path):
    (tmp_path / "neighbours").mkdir()
    (tmp_path / "neighbours" / "pyspark_zzz.py").write_text("raise ImportError('broken on purpose')")
    not_activated["PYTHONPATH"] = str(tmp_path / "neighbours")

    done = run(not_activated, "-m", "spark_connector.doctor")

    wrong = [line for line in done.stdout.splitlines() if line.startswith("!!")]
    assert done.returncode == 1, done.stderr
    assert any("workers' Python" in line and "PYSPARK_PYTHON" in line for line in wrong), done.stdout
    assert any("pyspark_zzz" in line and "broken on purpose" in line for line in wrong), done.stdout
    assert any("discovery" in line for line in wrong), done.stdout


@pytest.mark.slow  # a Spark of its own
def test_the_doctor_reads_a_message_where_everything_is_well(
    not_activated, make_topic, producer, admin, local_cluster
):
    topic = make_topic(queues=1)
    fill(producer, admin, dict.fromkeys(admin.fetch_subscribe_queues(topic), 1))
    activated = not_activated | {"PYSPARK_PYTHON": sys.executable}
    where = ("--name-server", local_cluster.name_server, "--topic", topic)

    done = run(activated, "-m", "spark_connector.doctor", *where)

    assert done.returncode == 0, done.stdout + done.stderr
    workers, others = ("workers' Python", "workers' packages"), ("pyspark", "pyarrow", "unix sockets")
    for what in ("driver's Python", *workers, *others, "discovery", "a read"):
        assert f"ok  {what}:" in done.stdout
