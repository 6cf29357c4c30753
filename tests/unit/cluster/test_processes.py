"""Finding, stopping and watching over the processes of a directory."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rmqtools.cluster import processes
from rmqtools.cluster.processes import Watchdog, find_processes, mark, stop_processes
from tests.support.cluster_scene import leftovers, wait_until
from tests.support.patience import PATIENCE

Spawn = Callable[..., "subprocess.Popen[bytes]"]
SERVER = "org.apache.rocketmq.broker.BrokerStartup"
SLEEP = "import signal; signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    started: list[subprocess.Popen[bytes]] = []

    def start(directory: Path, program: str = SLEEP) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", program, mark(directory), SERVER]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        started.append(process)
        wait_until(lambda: process.pid in find_processes(directory))  # its command line is there
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.process
def test_processes_are_found_by_their_directory_alone(tmp_path: Path, spawn: Spawn) -> None:
    ours = [spawn(tmp_path).pid, spawn(tmp_path).pid]
    spawn(tmp_path / "below")
    spawn(tmp_path.with_name(tmp_path.name + "x"))

    assert find_processes(tmp_path) == sorted(ours)


@pytest.mark.process
def test_a_process_that_ended_is_not_found(tmp_path: Path, spawn: Spawn) -> None:
    process = spawn(tmp_path)
    process.kill()

    wait_until(lambda: find_processes(tmp_path) == [])  # it is not reaped: a zombie does not count


@pytest.mark.process
def test_stopping_asks_first(tmp_path: Path, spawn: Spawn) -> None:
    process = spawn(tmp_path)

    assert stop_processes(tmp_path, grace=30) == [process.pid]
    assert process.wait() == -15


@pytest.mark.process
def test_stopping_kills_who_does_not_listen(tmp_path: Path, spawn: Spawn) -> None:
    process = spawn(tmp_path, DEAF)
    assert process.stdout is not None
    process.stdout.readline()

    assert stop_processes(tmp_path, grace=0.2) == [process.pid]
    assert process.wait() == -9


def test_stopping_nothing_is_no_error(tmp_path: Path) -> None:
    assert stop_processes(tmp_path, grace=30) == []


@pytest.mark.process
def test_a_released_watchdog_ends_and_leaves_everybody_alone(tmp_path: Path, spawn: Spawn) -> None:
    process = spawn(tmp_path)

    with Watchdog(tmp_path):
        pass

    assert leftovers(tmp_path) == [f"{sys.executable} -c {SLEEP} {mark(tmp_path)} {SERVER} "]
    assert process.poll() is None


@pytest.mark.process
def test_a_watchdog_is_released_while_a_forked_child_has_its_pipe(tmp_path: Path) -> None:
    watchdog = Watchdog(tmp_path)
    assert watchdog._process.stdin is not None
    with os.fdopen(os.dup(watchdog._process.stdin.fileno())):  # as a child has it
        releasing = threading.Thread(target=watchdog.release)
        releasing.start()
        releasing.join(PATIENCE)
        still_waits = releasing.is_alive()

    releasing.join()
    assert not still_waits


@pytest.mark.process
@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_a_watchdog_kills_when_its_owner_is_gone(tmp_path: Path, spawn: Spawn, how: str) -> None:
    owner_program = (
        "import sys, signal; from pathlib import Path; from rmqtools.cluster.processes import Watchdog\n"
        "dog = Watchdog(Path(sys.argv[1])); print('watching', flush=True); signal.pause()"
    )
    process = spawn(tmp_path)
    owner = subprocess.Popen([sys.executable, "-c", owner_program, str(tmp_path)], stdout=subprocess.PIPE)
    with owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        getattr(owner, how)()

    assert process.wait(timeout=30) == -9
    wait_until(lambda: not leftovers(tmp_path))


@pytest.mark.process
def test_a_watchdog_kills_although_a_forked_child_outlives_its_owner(tmp_path: Path, spawn: Spawn) -> None:
    owner_program = (
        "import os, sys; from pathlib import Path; from rmqtools.cluster.processes import Watchdog\n"
        "dog = Watchdog(Path(sys.argv[1]))\n"
        "if os.fork(): os._exit(0)\n"
        "sys.stdin.read()"
    )
    process = spawn(tmp_path)
    command = [sys.executable, "-c", owner_program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as owner:  # its child ends with the block
        assert owner.wait(PATIENCE) == 0

        assert process.wait(PATIENCE) == -9


@pytest.mark.process
def test_a_process_with_the_mark_that_is_no_server_is_left_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print(flush=True); input()", mark(tmp_path)]
    foreign = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with foreign:
        assert foreign.stdout is not None
        foreign.stdout.readline()

        assert find_processes(tmp_path) == []
        assert stop_processes(tmp_path, grace=0) == []
        assert foreign.poll() is None
        foreign.communicate(b"\n")


@pytest.mark.process
def test_a_server_of_another_user_is_not_found(tmp_path: Path, spawn: Spawn, monkeypatch) -> None:
    spawn(tmp_path)
    another = os.geteuid() + 1
    monkeypatch.setattr("rmqtools.cluster.processes.os.geteuid", lambda: another)

    assert find_processes(tmp_path) == []


def test_a_process_that_may_not_be_signalled_is_passed_over(monkeypatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("rmqtools.cluster.processes.os.kill", refuse)

    processes._signal([1], signal.SIGTERM)
