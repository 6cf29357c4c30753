"""``--plot`` of the commands."""

import json

import pytest

from rmqtools import MessageQueue

OFFLINE = ("allocate", "-t", "T", "--queues", "a:2,b:1", "--members", "10.0.0.1@x,10.0.0.2@y")


@pytest.mark.process  # it draws for a second
def test_allocate_saves_a_picture_of_several_strategies(run, tmp_path):
    path = tmp_path / "shares.svg"

    result = run(*OFFLINE, "-s", "AVG", "--compare", "AVG_BY_CIRCLE", "--plot", path, "--json")

    assert len(json.loads(result.stdout)) == 3
    assert result.stderr == f"saved {path}\n"
    assert "<svg" in path.read_text()


@pytest.mark.process  # it draws for a second
def test_group_watch_saves_the_lag_at_the_end(run, cluster, tmp_path):
    cluster.create_topic("watched", queues=1)
    cluster.create_group("seen")
    cluster.commit("seen", MessageQueue("watched", "broker-a", 0), 0)
    path = tmp_path / "lag.png"

    result = run("group", "watch", "seen", "--looks", "2", "--interval", "0.1", "--plot", path)

    assert result.stderr == f"saved {path}\n"
    assert path.read_bytes().startswith(b"\x89PNG")
