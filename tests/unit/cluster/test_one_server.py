"""One server of a cluster: what is refused before anything is started or stopped."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rmqtools import ClientConfig
from rmqtools.cluster import ClusterError, start_server, stop_server
from rmqtools.cluster.state import ClusterState, ServerState, load_state
from tests.support.patience import PATIENCE

CONFIG = ClientConfig(name_server="127.0.0.1:1")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A cluster whose servers do not run, as an older version wrote it down."""
    server = ServerState("broker-a", "127.0.0.1:10911", 2**22 + 1, str(tmp_path / "broker-a" / "output.log"))
    ClusterState(owner=7, detached=True, servers=[server]).persist(tmp_path)
    return tmp_path


def test_a_directory_without_a_cluster_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"no cluster runs in .*: start one with rmqtools cluster up"):
        stop_server(tmp_path, "broker-a")


def test_an_unknown_server_is_an_error_that_names_one_spelled_alike(directory: Path) -> None:
    with pytest.raises(ClusterError, match=r"unknown server 'broker-b' \(did you mean 'broker-a'\?\)"):
        start_server(directory, "broker-b", CONFIG)


def test_stopping_a_server_that_does_not_run_does_nothing(directory: Path) -> None:
    assert not stop_server(directory, "broker-a")


def test_a_server_of_an_older_version_cannot_be_started_alone(directory: Path) -> None:
    before = load_state(directory)

    with pytest.raises(ClusterError, match="broker-a was started by an older rmqtools: stop the cluster"):
        start_server(directory, "broker-a", CONFIG)
    assert load_state(directory) == before


def test_a_server_that_ends_while_it_starts_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    home = tmp_path / "broker-a"
    home.mkdir()
    (home / "server.log").write_text("no memory\n")
    output = str(home / "output.log")
    server = ServerState("broker-a", "127.0.0.1:1", 2**22 + 1, output, ["/bin/true"], "")
    ClusterState(owner=7, detached=True, servers=[server]).persist(tmp_path)

    with pytest.raises(ClusterError, match=r"(?s)broker-a ended while starting; .*no memory"):
        start_server(tmp_path, "broker-a", CONFIG)


def test_a_server_whose_java_was_removed_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "broker-a").mkdir()
    output, java = str(tmp_path / "broker-a" / "output.log"), str(tmp_path / "bin" / "java")
    server = ServerState("broker-a", "127.0.0.1:1", 2**22 + 1, output, [java], "")
    ClusterState(owner=7, detached=True, servers=[server]).persist(tmp_path)

    with pytest.raises(ClusterError, match=rf"{java} does not run .*: stop the cluster, and start it again"):
        start_server(tmp_path, "broker-a", CONFIG)


def test_starts_at_the_same_time_keep_the_pids_of_each_other(tmp_path: Path) -> None:
    names = [f"broker-{letter}" for letter in "abcdefgh"]
    servers = [
        ServerState(name, "127.0.0.1:1", -1, str(tmp_path / name / "output.log"), ["/bin/true"])
        for name in names
    ]
    for name in names:
        (tmp_path / name).mkdir()
    ClusterState(owner=7, detached=True, servers=servers).persist(tmp_path)
    all_here = threading.Barrier(len(names))

    def start(name: str) -> None:
        all_here.wait(PATIENCE)
        with pytest.raises(ClusterError, match="ended while starting"):
            start_server(tmp_path, name, CONFIG)

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(start, names))

    state = load_state(tmp_path)
    assert state is not None
    assert [server.name for server in state.servers if server.pid == -1] == []
