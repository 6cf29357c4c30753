"""Programs on Spark in processes of their own, and Spark's daemons beside them."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from rmqtools.clock import SYSTEM_CLOCK

ROOT: Final = Path(__file__).resolve().parents[2]
SPARK_HOME: Final = Path(pyspark.__file__).parent
_START_PATIENCE: Final = 120.0
_RUN_SECONDS: Final = 840

_QUICK_START: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_NO_REST: Final = "-Dspark.master.rest.enabled=false"  # its port is fixed


def environment(**more: str) -> dict[str, str]:
    """The environment of a process on Spark: loopback only, this Python, and ``more``."""
    own = {name: os.environ[name] for name in ("JAVA_HOME", "PATH", "PYTHONPATH") if name in os.environ}
    own |= {"SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": _QUICK_START, "SPARK_MASTER_OPTS": _NO_REST}
    return own | {"PYSPARK_PYTHON": sys.executable} | more


def run(command: Sequence[str], env: dict[str, str], *, cwd: Path = Path("/")) -> list[str]:
    """Run a program to its end; return the lines that it prints."""
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, timeout=_RUN_SECONDS, cwd=cwd
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


@contextmanager
def daemon(folder: Path, name: str, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a class of Spark's in the foreground for a block; its output goes to ``FOLDER/NAME.log``.

    Args:
        folder: its working directory.
        name: of its log.
        arguments: of ``spark-class``, the class first.
        variables: of its environment.
    """
    with (
        (folder / f"{name}.log").open("ab") as log,
        subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
            env=environment(SPARK_HOME=str(SPARK_HOME), **variables),
            stdout=log,
            stderr=log,
            cwd=folder,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def await_port(port: int) -> None:
    """Wait until a process listens on a port of 127.0.0.1."""
    deadline = SYSTEM_CLOCK.monotonic() + _START_PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert SYSTEM_CLOCK.monotonic() < deadline, f"nobody listens on {port}"
        else:
            return


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def standalone_cluster(folder: Path, **variables: str) -> Iterator[str]:
    """Run a master and two workers of one core each, from PySpark's own jars; yields the master's URL.

    Each worker has an address of its own, as on two machines: Spark never runs a slow task again on the host
    of its first attempt. Executors inherit the ``variables`` of the workers' environment.
    """
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port))
    with daemon(folder, "master", *master, "--webui-port", "0"):
        await_port(port)
        with (
            daemon(folder, "worker-0", *_worker("127.0.0.1", folder / "0"), url, **variables),
            daemon(folder, "worker-1", *_worker("127.0.0.2", folder / "1"), url, **variables),
        ):
            yield url


def _worker(host: str, folder: Path) -> Iterator[str]:
    """The class of a worker of one core, and its arguments but the master's URL."""
    yield from ("org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0")
    yield from ("--cores", "1", "--memory", "700m", "--work-dir", str(folder))
