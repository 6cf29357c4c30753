"""Failures at start, with shell scripts as servers, and the state they leave."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any

import pytest

from rmqtools.cluster import ClusterError, LocalCluster
from rmqtools.cluster.children import Children
from rmqtools.cluster.file_lock import FileLock
from rmqtools.cluster.processes import find_processes, mark, stop_processes
from rmqtools.cluster.state import ClusterState, ServerState
from rmqtools.errors import ConfigError
from tests.support.cluster_scene import JAVA_17, leftovers, wait_until, write_program

STAY = "while :; do sleep 0.05; done"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{os.environ['PATH']}")
    yield tmp_path
    stop_processes(tmp_path / "cluster", grace=0)


def java(root: Path, script: str) -> None:
    write_program(root / "programs", "java", JAVA_17 + script)


def cluster(root: Path, **options: float) -> LocalCluster:
    return LocalCluster(directory=root / "cluster", jars=[], start_timeout=options.get("timeout", 60))


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "text"),
    [
        pytest.param("echo no such option; exit 3", r"ended while starting \(exit code 3\)", id="ends"),
        pytest.param("kill -9 $$", r"ended while starting \(exit code -9\)", id="is-killed"),
        pytest.param(
            f"""echo 'Exception in thread "main" java.lang.OutOfMemoryError'; {STAY}""",
            r"failed while starting; .*OutOfMemoryError",
            id="lives-on-without-its-main-thread",
        ),
    ],
)
def test_a_server_that_dies_is_named_with_its_logs_and_nothing_is_left(
    root: Path, script: str, text: str
) -> None:
    java(root, script)

    with pytest.raises(ClusterError, match=rf"(?s)namesrv at 127\.0\.0\.1:\d+ {text}") as caught:
        cluster(root).start()

    assert f"{root}/cluster/namesrv/output.log" in str(caught.value)
    assert leftovers(root) == []
    assert not (root / "cluster" / "state.json").exists()


@pytest.mark.process  # it works for seconds
def test_a_server_that_never_answers_ends_the_start_in_time(root: Path) -> None:
    java(root, STAY)

    with pytest.raises(
        ClusterError, match=r"not ready after 0\.3 s: 127.0.0.1:.* does not listen .*server\.log"
    ):
        cluster(root, timeout=0.3).start()
    assert leftovers(root) == []


def test_a_directory_where_somebody_starts_a_cluster_is_refused(root: Path) -> None:
    java(root, STAY)
    lock = FileLock(root / "cluster" / "lock")
    assert lock.acquire(wait=False)

    owner = f"process {os.getpid()} starts or runs a cluster there"
    with pytest.raises(ClusterError, match=rf"{root}/cluster is in use: {owner}; end that process or give"):
        cluster(root).start()
    lock.release()


class Started(LocalCluster):
    """A cluster that counts as started, without servers."""

    def _start_all(self) -> None:
        self._children = Children(self.directory)


@pytest.mark.process
def test_a_second_start_is_refused_and_the_cluster_runs_on(root: Path) -> None:
    java(root, STAY)

    with Started(directory=root / "cluster", jars=[]) as cluster:
        with pytest.raises(ClusterError, match="was started already"):
            cluster.start()

        assert cluster.directory == root / "cluster"
        assert not FileLock(root / "cluster" / "lock").acquire(wait=False)


@pytest.mark.process
def test_a_server_is_awaited_while_another_one_is_dead(root: Path) -> None:
    java(root, f'case "$*" in */broker-a*) exit 3;; esac; {STAY}')

    with Started(2, directory=root / "cluster", jars=[], start_timeout=0.3) as cluster:
        cluster.start_server("broker-a", wait=False)
        wait_until(lambda: not cluster._running.runs("broker-a"))

        with pytest.raises(ClusterError, match=r"not ready after 0\.3 s"):
            cluster.start_server("broker-b")


def test_a_directory_that_cannot_be_made_is_refused(root: Path) -> None:
    java(root, STAY)
    (root / "file").touch()

    with pytest.raises(
        ClusterError, match=rf"{root}/file/cluster cannot be used: .*: give another directory"
    ):
        LocalCluster(directory=root / "file" / "cluster", jars=[]).start()


def running(directory: Path) -> "subprocess.Popen[bytes]":
    """Start something that passes for the name server of a detached cluster."""
    stay = "import signal; signal.pause()"  # a shell's child would look like the shell until its exec
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", stay, mark(directory), "org.apache.rocketmq.Test"],
        start_new_session=True,
    )
    directory.mkdir(exist_ok=True)
    server = ServerState("namesrv", "127.0.0.1:9876", process.pid, "")
    ClusterState(owner=1, detached=True, servers=[server]).persist(directory)
    return process


@pytest.mark.process
def test_a_directory_whose_cluster_runs_is_refused_by_pid_and_left_alone(root: Path) -> None:
    java(root, STAY)
    process = running(root / "cluster")

    with pytest.raises(
        ClusterError, match=rf"in use: a cluster runs there \(pid {process.pid}, name server 127"
    ):
        cluster(root).start()

    assert process.poll() is None
    os.killpg(process.pid, 9)
    process.wait()


@pytest.mark.process
def test_stopping_asks_a_server_that_another_process_started_again(root: Path) -> None:
    java(root, STAY)

    with Started(directory=root / "cluster", jars=[]):
        process = running(root / "cluster")
        wait_until(lambda: process.pid in find_processes(root / "cluster"))

    assert process.wait() == -signal.SIGTERM


@pytest.mark.process
def test_the_state_of_dead_processes_is_cleared_away(root: Path) -> None:
    java(root, "exit 3")
    process = running(root / "cluster")
    os.killpg(process.pid, 9)
    process.wait()

    with pytest.raises(ClusterError, match="exit code 3"):  # it went on to start servers
        cluster(root).start()
    assert not (root / "cluster" / "state.json").exists()


@pytest.mark.process
def test_a_temporary_directory_is_removed_after_a_failed_start(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(root, "exit 3")
    monkeypatch.setattr("tempfile.tempdir", str(root))

    with pytest.raises(ClusterError, match="exit code 3"):
        LocalCluster(jars=[]).start()
    assert [path.name for path in root.iterdir()] == ["programs"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        *[({"brokers": brokers}, f"brokers={brokers}: .* 1 to 26") for brokers in (0, 27, -1)],
        *[({"slaves": slaves}, f"slaves={slaves}: .* 0 to 9") for slaves in (-1, 10)],
        ({"brokers": 2, "broker_ports": [10911]}, r"broker_ports=\[10911\]: want 2, one for each broker"),
    ],
)
def test_an_impossible_cluster_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        LocalCluster(**settings)


@pytest.mark.parametrize(
    "use",
    [
        *map(attrgetter, ("name_server", "broker_addrs", "directory", "servers")),
        *[methodcaller(f"{do}_server", "broker-a") for do in ("stop", "kill", "start", "await")],
    ],
    ids=str,
)
def test_a_cluster_that_does_not_run_has_no_addresses_and_no_servers(
    use: Callable[[LocalCluster], object],
) -> None:
    with pytest.raises(ClusterError, match="not running: call start"):
        use(LocalCluster())


def test_stopping_what_does_not_run_does_nothing() -> None:
    LocalCluster().stop()


@pytest.mark.process
def test_importing_the_package_starts_no_thread() -> None:
    program = "import rmqtools.cluster, threading, sys; sys.exit(threading.active_count() - 1)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
