"""The local cluster with real servers: it starts, serves, stops, and leaves nothing behind when it fails."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.cluster import ClusterError, LocalCluster
from rmqtools.cluster.file_lock import FileLock
from rmqtools.cluster.lock import DEFAULT_VERSION
from rmqtools.cluster.processes import find_processes, stop_processes
from rmqtools.cluster.state import fetch_status
from tests.support.cluster_scene import Scene, leftovers, wait_until
from tests.support.cluster_scene import ended as ended_of
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.broker


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    stop_processes(scene.directory, grace=0)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, id="sigint"),
        pytest.param(signal.SIGTERM, 143, id="sigterm", marks=pytest.mark.slow),  # a start and a stop
    ],
)
def test_an_up_that_is_interrupted_says_so_and_leaves_no_process(
    scene: Scene, number: signal.Signals, code: int
) -> None:
    ended = scene.up_interrupted(number)

    assert ended.returncode == code, ended.stderr
    assert f"error: interrupted by {number.name}" in ended.stderr
    assert "Traceback" not in ended.stderr
    wait_until(lambda: not leftovers(scene.directory))


@pytest.mark.slow  # two starts
def test_a_kill_in_mid_start_leaves_no_process_and_the_directory_can_be_used_again(scene: Scene) -> None:
    assert scene.up_interrupted(signal.SIGKILL).returncode == -signal.SIGKILL
    wait_until(lambda: not leftovers(scene.directory))

    assert scene.run("status").returncode == 3
    assert scene.run("up").returncode == 0
    assert scene.run("status").returncode == 0


@pytest.mark.slow  # the demo starts and stops a cluster; each command has a shorter test
def test_up_status_down_keep_the_messages_of_the_directory(scene: Scene) -> None:
    assert scene.run("up", "--brokers", "2").returncode == 0
    shown = scene.run("status")
    with Admin(ClientConfig(name_server=shown.stdout.split("name server: ")[1].strip())) as admin:
        admin.create_topic("kept", read_queue_nums=1, write_queue_nums=1)
    assert scene.run("down").returncode == 0
    assert leftovers(scene.directory) == []

    with LocalCluster(2, directory=scene.directory) as cluster, Admin(_config(cluster)) as admin:
        assert "kept" in admin.fetch_topic_list()


@pytest.mark.slow  # unit/cluster has the states of servers; brokers are killed and started by many tests
def test_status_tells_of_a_broker_that_died_which_is_started_again_alone(scene: Scene) -> None:
    assert scene.run("up").returncode == 0
    name_server, broker = (server.pid for server in fetch_status(scene.directory))
    os.kill(broker, signal.SIGKILL)
    wait_until(lambda: find_processes(scene.directory) == [name_server])

    shown = scene.run("status")

    assert shown.returncode == 3
    assert [line.split()[-1] for line in shown.stdout.splitlines()[1:3]] == ["yes", "no"]
    assert scene.run("start", "broker-a").stdout == "broker-a is started\n"
    assert scene.run("start", "broker-a").stdout == "broker-a runs already\n"
    assert scene.run("status").returncode == 0
    assert name_server in find_processes(scene.directory)
    assert scene.run("stop", "broker-a").stdout == "broker-a is stopped\n"
    assert find_processes(scene.directory) == [name_server]


@pytest.mark.slow  # a slave and a proxy are started too; Docker's tests have both
def test_up_in_the_foreground_has_what_was_asked_for_until_it_is_stopped(scene: Scene) -> None:
    more = ("--slaves", "1", "--proxy", "--timer-wheel", "--server-version", DEFAULT_VERSION)
    running = scene.start("up", "--foreground", *more)
    assert running.stdout is not None
    shown = ""
    while "\nproxy " not in shown:
        shown += running.stdout.readline() or pytest.fail(shown)
    assert scene.run("stop", "broker-a-slave-1", "--kill").stdout == "broker-a-slave-1 is stopped\n"
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=PATIENCE)

    for name in ("broker-a ", "broker-a-slave-1 ", "proxy "):
        assert f"\n{name}" in shown
    assert leftovers(scene.directory) == []


@pytest.mark.slow  # a start and a stop
def test_up_in_the_foreground_ends_after_down_and_the_directory_is_free(scene: Scene) -> None:
    running = scene.start("up", "--foreground")
    assert running.stdout is not None
    while "name server" not in (line := running.stdout.readline()):
        assert line

    assert scene.run("down").stdout == f"stopped 2 processes of {scene.directory}\n"
    assert ended_of(running).returncode == 0
    lock = FileLock(scene.directory / "lock")
    assert lock.acquire(wait=False)
    lock.release()


@dataclass(frozen=True)
class Ended:
    """A cluster that has ended: its folder, its addresses as served and as registered, a broker's log."""

    directory: Path
    served: dict[str, str]
    known: dict[str, str]
    log: str


@pytest.fixture(scope="module")
def ended() -> Ended:
    """A cluster of two brokers with settings of the user's own, after its block."""
    settings = {"maxMessageSize": "1234567"}
    with (
        LocalCluster(brokers=2, broker_settings=settings, timer_wheel=True) as cluster,
        Admin(_config(cluster)) as admin,
    ):
        known = admin.fetch_cluster_info().broker_addr_table
        addresses = {name: broker.broker_addrs[0] for name, broker in known.items()}
        return Ended(cluster.directory, cluster.broker_addrs, addresses, cluster.servers[1].log.read_text())


def test_all_brokers_answer_as_soon_as_the_block_is_entered(ended: Ended) -> None:
    assert ended.known == ended.served
    assert ended.served.keys() == {"broker-a", "broker-b"}


def test_nothing_is_left_of_a_cluster_after_its_block(ended: Ended) -> None:
    assert leftovers(ended.directory) == []
    assert not ended.directory.exists()


def test_broker_settings_and_the_timer_wheel_reach_the_broker(ended: Ended) -> None:
    assert "maxMessageSize=1234567" in ended.log
    assert "timerWheelEnable=true" in ended.log


def test_a_broker_registers_at_once_and_not_at_its_second_try_after_10_seconds(ended: Ended) -> None:
    assert registered_after(ended.log) < timedelta(seconds=9)


def registered_after(log: str) -> timedelta:
    """The time from a broker's start until its name server knew it."""
    return logged_at(log, "name server completed") - logged_at(log, "boot success")


def logged_at(log: str, text: str) -> datetime:
    line = next(line for line in log.splitlines() if text in line)
    return datetime.fromisoformat(line[:23])


def test_a_broker_without_memory_is_reported_with_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    too_small = ("-Xmx96m", "-XX:MaxDirectMemorySize=8m")
    monkeypatch.setattr("rmqtools.cluster.server._TIMER_WHEEL_MEMORY", too_small)

    with pytest.raises(ClusterError, match=r"(?s)broker-a at .* while starting.*memory"):
        LocalCluster(timer_wheel=True).start()


def test_servers_die_with_the_process_that_started_them(tmp_path: Path) -> None:
    program = (
        "import sys; from rmqtools.cluster import LocalCluster\n"
        "with LocalCluster(directory=sys.argv[1]): print('up', flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        assert len(find_processes(tmp_path)) == 2
        owner.kill()

    wait_until(lambda: not leftovers(tmp_path))


def _config(cluster: LocalCluster) -> ClientConfig:
    return ClientConfig(name_server=cluster.name_server)
