"""``rmqtools mirror`` on two clusters in this process."""

import json
from collections.abc import Iterator
from random import Random

import pytest
from typer.testing import Result

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError, ExactAppendError
from rmqtools.testing import FakeCluster
from tests.unit.cli.conftest import Run

QUEUE = MessageQueue("mirrored", "broker-a", 0)
QUICK = ("--settle", "0")


@pytest.fixture
def target(cluster: FakeCluster) -> Iterator[FakeCluster]:
    """Another cluster, with the topics of the first one."""
    with FakeCluster(cluster="west") as west:
        for each in (cluster, west):
            for topic in ("mirrored", "second", "refused"):
                each.create_topic(topic, queues=1, broker_names=["broker-a"])
        yield west


@pytest.fixture
def mirror(run, target: FakeCluster) -> Run:
    """Run a mirror of a topic to the other cluster."""

    def mirror(topics: str, *options: str) -> Result:
        return run("mirror", "run", topics, "--to", target.name_server, *QUICK, *options)

    return mirror


def copies(target: FakeCluster, topic: str = "mirrored") -> list[bytes]:
    return [message.body for message in target.messages(topic)]


def test_a_run_copies_what_is_there_and_a_second_one_what_came_since(mirror, cluster, target):
    cluster.store("mirrored", b"1", b"2", queue=QUEUE)
    first = mirror("mirrored")
    cluster.store("mirrored", b"3", queue=QUEUE)
    second = mirror("mirrored", "--json")

    assert "broker-a:0" in first.stdout
    assert [each["copied"] for each in json.loads(second.stdout)] == [1]
    assert copies(target) == [b"1", b"2", b"3"]


def test_groups_are_shown_and_then_moved(run, mirror, cluster, target):
    cluster.store("mirrored", b"1", b"2", queue=QUEUE)
    cluster.commit("billing", QUEUE, 2)
    mirror("mirrored")
    arguments = ("mirror", "groups", "mirrored", "--to", target.name_server, "-g", "billing")
    planned = json.loads(run(*arguments, "--dry-run", "--json").stdout)
    assert target.committed("billing", QUEUE) is None

    run(*arguments, "--yes")
    assert target.committed("billing", QUEUE) == planned["billing"][0]["target_offset"]


def test_tags_and_a_condition_exclude_each_other(mirror):
    with pytest.raises(ConfigError, match=r"both --tags=\['a'\] and --sql='b': give one"):
        mirror("mirrored", "--tags", "a", "--sql", "b")


def test_a_group_that_cannot_be_moved_is_refused_with_the_names_of_options(run, cluster):
    with FakeCluster() as same, pytest.raises(ConfigError, match="give --source-name and --target-name"):
        run("mirror", "groups", "mirrored", "--to", same.name_server, "-g", "billing")


def test_lists_leave_out_what_a_mirror_makes_for_itself(run, mirror, cluster, target):
    cluster.store("mirrored", b"1", queue=QUEUE)
    mirror("mirrored")
    there = ("-n", target.name_server)

    assert "RMQTOOLS" not in run("group", "list", *there).stdout + run("topic", "list", *there).stdout
    assert "RMQTOOLS_EXACT-DefaultCluster" in run("group", "list", "--system", *there).stdout
    assert "RMQTOOLS_FENCE" in run("topic", "list", "--system", *there).stdout


def test_several_topics_are_named_with_commas(mirror):
    done = mirror("mirrored=second,second=mirrored", "--json")

    assert {(each["source"]["topic"], each["target"]["topic"]) for each in json.loads(done.stdout)} == {
        ("mirrored", "second"),
        ("second", "mirrored"),
    }


def test_the_target_has_settings_and_a_profile_of_its_own(
    run, mirror, cluster, target, monkeypatch, tmp_path
):
    monkeypatch.setenv("RMQTOOLS_CONFIG", str(tmp_path / "config.toml"))
    target.create_topic("ns%mirrored", queues=1, broker_names=["broker-a"])
    run("profile", "create", "west", "-n", target.name_server, "--set", "namespace=ns")

    cluster.store("mirrored", b"1", queue=QUEUE)
    run("mirror", "run", "mirrored", "--to-profile", "west", *QUICK)
    cluster.store("mirrored", b"2", queue=QUEUE)
    mirror("mirrored", "--to-set", "namespace=ns")

    assert copies(target, "ns%mirrored") == [b"1", b"2"]


def test_messages_that_the_target_refuses_go_to_a_topic_and_the_rest_is_copied(mirror, cluster, target):
    cluster.store("mirrored", Random(1).randbytes(5_000_000), b"2", queue=QUEUE)

    mirror("mirrored", "--refused", "refused")

    assert (copies(target), len(copies(target, "refused"))) == ([b"2"], 1)


def test_a_first_copy_of_a_queue_whose_first_messages_expired_is_made_only_if_it_is_new(
    mirror, cluster, target
):
    target.store("mirrored", b"old", b"older", queue=QUEUE)
    target.begin_at(QUEUE, 1)
    cluster.store("mirrored", b"new", queue=QUEUE)

    with pytest.raises(ExactAppendError, match="--new"):
        mirror("mirrored")
    mirror("mirrored", "--new")

    assert copies(target)[-1] == b"new"
