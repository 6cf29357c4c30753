"""What is written down about a cluster."""

import os
from pathlib import Path

import pytest

from rmqtools.cluster import ClusterError, ServerStatus, fetch_status, stop_cluster
from rmqtools.cluster.state import ClusterState, ServerState, load_state

STATE = ClusterState(
    owner=7, detached=True, servers=[ServerState("namesrv", "127.0.0.1:9876", 8, "/x/output.log")]
)


def test_a_state_is_read_back_as_written(tmp_path: Path) -> None:
    STATE.persist(tmp_path)

    assert load_state(tmp_path) == STATE
    assert STATE.name_server == "127.0.0.1:9876"


def test_a_directory_without_a_cluster_has_no_state_and_no_status(tmp_path: Path) -> None:
    assert load_state(tmp_path / "nowhere") is None
    assert fetch_status(tmp_path) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"servers": [{"name": "x"}]}'])
def test_a_damaged_state_names_file_and_remedy_which_works(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)

    with pytest.raises(ClusterError, match=r"state\.json is damaged .*run 'down'"):
        load_state(tmp_path)
    assert stop_cluster(tmp_path) == []
    assert load_state(tmp_path) is None


def test_a_recorded_pid_that_belongs_to_somebody_else_is_not_alive(tmp_path: Path) -> None:
    server = ServerState("namesrv", "127.0.0.1:9876", os.getpid(), "/x/output.log")
    ClusterState(owner=7, detached=True, servers=[server]).persist(tmp_path)

    assert fetch_status(tmp_path) == [ServerStatus("namesrv", "127.0.0.1:9876", os.getpid(), alive=False)]
    assert stop_cluster(tmp_path) == []
