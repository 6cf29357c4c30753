"""``rmqtools mirror`` on two clusters in this process."""

import json
from collections.abc import Iterator

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError, ExactAppendError
from rmqtools.testing import FakeCluster

QUEUE = MessageQueue("mirrored", "broker-a", 0)
QUICK = ("--settle", "0")


@pytest.fixture
def target(cluster: FakeCluster) -> Iterator[FakeCluster]:
    """Another cluster, with the topic of the first one."""
    with FakeCluster(cluster="west") as west:
        for each in (cluster, west):
            each.create_topic("mirrored", queues=1, broker_names=["broker-a"])
        yield west


def test_a_run_copies_what_is_there_and_a_second_one_what_came_since(run, cluster, target):
    cluster.store("mirrored", b"1", b"2", queue=QUEUE)
    first = run("mirror", "run", "mirrored", "--to", target.name_server, *QUICK)
    cluster.store("mirrored", b"3", queue=QUEUE)
    second = run("mirror", "run", "mirrored", "--to", target.name_server, *QUICK, "--json")

    assert "broker-a:0" in first.stdout
    assert [each["copied"] for each in json.loads(second.stdout)] == [1]
    assert [message.body for message in target.messages("mirrored")] == [b"1", b"2", b"3"]


def test_groups_are_shown_and_then_moved(run, cluster, target):
    cluster.commit("billing", QUEUE, 2)
    run("mirror", "run", "mirrored", "--to", target.name_server, *QUICK)
    arguments = ("mirror", "groups", "mirrored", "--to", target.name_server, "-g", "billing")
    planned = json.loads(run(*arguments, "--dry-run", "--json").stdout)
    assert target.committed("billing", QUEUE) is None

    run(*arguments, "--yes")
    assert target.committed("billing", QUEUE) == planned["billing"][0]["target_offset"]


def test_an_error_of_the_run_ends_the_command(run, cluster, target):
    with pytest.raises(ConfigError, match="copied to itself"):
        run("mirror", "run", "mirrored", *QUICK)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--share", "2"), "--share=2.0: want a part of 1"),
        (("--source-name", "x/y"), "--source-name='x/y': want letters"),
        (("--tags", "a", "--sql", "b"), r"both --tags=\['a'\] and --sql='b': give one"),
    ],
)
def test_errors_name_options(run, cluster, target, options, text):
    with pytest.raises(ConfigError, match=text):
        run("mirror", "run", "mirrored", "--to", target.name_server, *options)


def test_a_group_that_cannot_be_moved_is_refused_with_the_names_of_options(run, cluster):
    with FakeCluster() as same, pytest.raises(ConfigError, match="give --source-name and --target-name"):
        run("mirror", "groups", "mirrored", "--to", same.name_server, "-g", "billing")


def test_lists_leave_out_what_a_mirror_makes_for_itself(run, cluster, target):
    cluster.store("mirrored", b"1", queue=QUEUE)
    run("mirror", "run", "mirrored", "--to", target.name_server, *QUICK)
    there = ("-n", target.name_server)

    assert "RMQTOOLS" not in run("group", "list", *there).stdout + run("topic", "list", *there).stdout
    assert "RMQTOOLS_EXACT-DefaultCluster" in run("group", "list", "--system", *there).stdout
    assert "RMQTOOLS_FENCE" in run("topic", "list", "--system", *there).stdout


def test_several_topics_are_named_with_commas(run, cluster, target):
    for each in (cluster, target):
        each.create_topic("second", queues=1, broker_names=["broker-a"])
    done = run(
        "mirror", "run", "mirrored=second,second=mirrored", "--to", target.name_server, *QUICK, "--json"
    )

    assert {(each["source"]["topic"], each["target"]["topic"]) for each in json.loads(done.stdout)} == {
        ("mirrored", "second"),
        ("second", "mirrored"),
    }


def test_the_target_has_settings_and_a_profile_of_its_own(run, cluster, monkeypatch, tmp_path):
    monkeypatch.setenv("RMQTOOLS_CONFIG", str(tmp_path / "config.toml"))
    with FakeCluster(cluster="west") as west:
        cluster.create_topic("abroad", queues=1, broker_names=["broker-a"])
        west.create_topic("ns%abroad", queues=1, broker_names=["broker-a"])
        cluster.store("abroad", b"1", queue=MessageQueue("abroad", "broker-a", 0))
        run("profile", "create", "west", "-n", west.name_server, "--set", "namespace=ns")
        run("mirror", "run", "abroad", "--to-profile", "west", *QUICK)
        cluster.store("abroad", b"2", queue=MessageQueue("abroad", "broker-a", 0))
        run("mirror", "run", "abroad", "--to", west.name_server, "--to-set", "namespace=ns", *QUICK)
        copied = [message.body for message in west.messages("ns%abroad")]

    assert copied == [b"1", b"2"]


def test_messages_that_the_target_refuses_go_to_a_topic_and_the_rest_is_copied(run, cluster):
    with FakeCluster(cluster="west") as west:
        for each in (cluster, west):
            for topic in ("mixed", "refused"):
                each.create_topic(topic, queues=1, broker_names=["broker-a"])
        cluster.store("mixed", b"x" * 5_000_000, b"2", queue=MessageQueue("mixed", "broker-a", 0))
        run("mirror", "run", "mixed", "--to", west.name_server, "--refused", "refused", *QUICK)
        copied, refused = (
            [message.body for message in west.messages(topic)] for topic in ("mixed", "refused")
        )

    assert (copied, len(refused)) == ([b"2"], 1)


def test_a_first_copy_of_a_queue_whose_first_messages_expired_is_made_only_if_it_is_new(run, cluster, target):
    for queue_owner in (cluster, target):
        queue_owner.create_topic("expired", queues=1, broker_names=["broker-a"])
    queue = MessageQueue("expired", "broker-a", 0)
    target.store("expired", b"old", b"older", queue=queue)
    target.begin_at(queue, 1)
    cluster.store("expired", b"new", queue=queue)
    arguments = ("mirror", "run", "expired", "--to", target.name_server, *QUICK)

    with pytest.raises(ExactAppendError, match="--new"):
        run(*arguments)
    run(*arguments, "--new")

    assert [message.body for message in target.messages("expired")][-1] == b"new"
