"""Spark elsewhere than in the test's own process: a standalone cluster, Spark Connect, --py-files."""

import os
import socket
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pyspark
import pytest

from rmqtools.clock import SYSTEM_CLOCK

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(600), pytest.mark.slow]

SPARK_HOME = Path(pyspark.__file__).parent
CHECKOUT = Path(__file__).resolve().parents[2]
START_PATIENCE = 120.0

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
NO_REST = "-Dspark.master.rest.enabled=false"  # its port is fixed
LOCAL_ADDRESSES = """
builder = builder.config("spark.ui.enabled", "false").config("spark.executor.memory", "512m")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
"""
# The same lines on every kind of Spark; argv is what makes the session, the name server, the topic.
READ_AND_WRITE = """
options = {"nameServer": sys.argv[2], "topic": sys.argv[3]}
rows = spark.range(2000).selectExpr("concat('body ', id) AS body", "'t' AS tags").repartition(4)
rows.write.format("rocketmq").options(**options).mode("append").save()
read = spark.read.format("rocketmq").options(**options).load()
print("rows:", read.count(), "distinct:", read.select("body").distinct().count())
print("tagged:", spark.read.format("rocketmq").options(**options, tags="t", readers="3").load().count())
"""
WRITTEN = ["rows: 2000 distinct: 2000", "tagged: 2000"]


def program(*parts: str) -> str:
    return "\n".join(
        ("import sys", "from pyspark.sql import SparkSession", "builder = SparkSession.builder", *parts)
    )


def run(command: Sequence[str], env: dict[str, str]) -> list[str]:
    """What a program prints."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=500, cwd="/")
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


def environment(**more: str) -> dict[str, str]:
    own = {name: os.environ[name] for name in ("JAVA_HOME", "PATH", "PYTHONPATH") if name in os.environ}
    own |= {"SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": QUICK_START, "SPARK_MASTER_OPTS": NO_REST}
    return own | {"PYSPARK_PYTHON": sys.executable} | more


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A daemon of Spark's, in the foreground."""
    with (tmp_path / f"{arguments[0].rpartition('.')[2]}.log").open("ab") as log:
        return subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
            env=environment(SPARK_HOME=str(SPARK_HOME)),
            stdout=log,
            stderr=log,
            cwd=tmp_path,
        )


def await_port(port: int) -> None:
    deadline = SYSTEM_CLOCK.monotonic() + START_PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert SYSTEM_CLOCK.monotonic() < deadline, f"nobody listens on {port}"
        else:
            return


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """A master and two workers of one core each; yields the master's URL."""
    port = free_port()
    master = start(
        tmp_path,
        "org.apache.spark.deploy.master.Master",
        *("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"),
    )
    processes = [master]
    try:
        await_port(port)
        url = f"spark://127.0.0.1:{port}"
        processes.extend(
            start(
                tmp_path,
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "700m"),
                *("--work-dir", str(tmp_path / f"work-{number}"), url),
            )
            for number in range(2)
        )
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=60)


def test_a_standalone_cluster_reads_and_writes_as_a_local_session_does(standalone, local_cluster, make_topic):
    """Two executors in processes of their own; they know the package because it is installed."""
    text = program(
        "builder = builder.master(sys.argv[1])",
        LOCAL_ADDRESSES,
        "spark = builder.config('spark.scheduler.minRegisteredResourcesRatio', '1').getOrCreate()",
        READ_AND_WRITE,
        "import spark_connector; print(*spark_connector.reader_ids(spark))",
    )
    arguments = [standalone, local_cluster.name_server, make_topic()]

    printed = run([sys.executable, "-c", text, *arguments], environment())

    assert printed == [*WRITTEN, "127.0.0.1@reader-0 127.0.0.1@reader-1"]


@pytest.mark.skipif(find_spec("grpc") is None, reason="pip install pyspark[connect]")
def test_spark_connect_reads_and_writes_and_takes_a_registration(local_cluster, make_topic):
    text = program(
        "spark = builder.remote(sys.argv[1]).getOrCreate()",
        "import spark_connector",
        "print(type(spark).__module__)",
        READ_AND_WRITE,
        "spark_connector.register(spark)",
        "print(spark.read.format('rocketmq').options(**options).load().count())",
        "try: spark_connector.reader_ids(spark)",
        "except ValueError as error: print(error)",
        "spark_connector.refresh(spark, 'v')",
        "spark_connector.refresh(spark, 'v', options)",
        "print(spark.table('v').count())",
    )
    arguments = ["local[2]", local_cluster.name_server, make_topic()]

    module, *printed, count, refusal, statement, again = run(
        [sys.executable, "-c", text, *arguments], environment()
    )

    assert module == "pyspark.sql.connect.session"
    assert (printed, count) == (WRITTEN, "2000")
    assert "give option 'readerIds' yourself" in refusal
    assert statement.startswith("CREATE OR REPLACE TEMPORARY VIEW `v` USING rocketmq")
    assert again == "2000"


def test_a_package_that_is_not_installed_comes_with_py_files_and_register(
    tmp_path, local_cluster, make_topic
):
    """An interpreter that has the libraries and not this package; a zip file brings it to the tasks."""
    archive = tmp_path / "rmqtools.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in (
            path for name in ("rmqtools", "spark_connector") for path in (CHECKOUT / name).rglob("*.py")
        ):
            packed.write(path, path.relative_to(CHECKOUT))
    script = tmp_path / "job.py"
    script.write_text(
        program(
            "spark = builder.getOrCreate()",
            "import spark_connector; print('zip' in spark_connector.__file__)",
            "spark_connector.register(spark)",
            READ_AND_WRITE,
        )
    )
    python = getattr(sys, "_base_executable", sys.executable)
    env = environment(PYSPARK_PYTHON=python, PYTHONPATH=sysconfig.get_path("purelib"))
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", "--py-files", str(archive)]

    printed = run([*command, str(script), "-", local_cluster.name_server, make_topic()], env)

    assert printed == ["True", *WRITTEN]
