"""``rmqtools broker drain`` on a cluster in this process."""

import pytest

from rmqtools import MessageQueue
from rmqtools.testing import FakeCluster, Reaction

QUEUE = MessageQueue("orders", "broker-b", 0)
DRAIN = ("broker", "drain", "broker-b", "--yes", "--interval", "0.1")

pytestmark = pytest.mark.process  # two looks wait for a moment


@pytest.fixture
def cluster():
    with FakeCluster(brokers=("broker-a", "broker-b"), auto_create_topics=False, delay_scale=1000) as cluster:
        cluster.create_topic("orders", queues=1)
        cluster.create_group("billing")
        cluster.store("orders", b"1", b"2", queue=QUEUE)
        cluster.commit("billing", QUEUE, 2)
        yield cluster


def test_an_empty_broker_may_be_stopped_and_is_read_only_until_undrain(run):
    drained = run(*DRAIN)
    health, status = run("health"), run("broker", "status").stdout
    undrained = run("broker", "undrain", "broker-b")

    assert drained.exit_code == 0
    assert drained.stdout.splitlines()[-1] == "broker broker-b may be stopped"
    assert (health.exit_code, health.stdout) == (1, "unhealthy: broker-b (master): read-only\n")
    assert status.splitlines()[2].endswith("read-only")
    assert undrained.stdout == "broker broker-b is writable: producers send to it within 30 s\n"
    assert run("health").exit_code == 0


def test_a_dry_run_says_what_waits_and_changes_nothing(run):
    waits = run("broker", "drain", "broker-b", "--dry-run")
    state = run("broker", "undrain", "broker-b", "--dry-run", "--yes")

    assert waits.stdout == "broker broker-b waits for: nothing\n"
    assert "without it: Forbid writing to broker broker-b" in waits.stderr
    assert state.stdout == "broker broker-b is not read-only now\n"


def test_messages_of_a_group_without_members_are_named_and_the_broker_is_not_empty(run, cluster):
    cluster.commit("billing", QUEUE, 1)

    left = run(*DRAIN)

    assert left.exit_code == 1
    assert left.stdout.splitlines()[-1] == (
        "broker broker-b has messages that nobody consumes now: group billing: 1 message, offline"
    )


def test_a_group_with_members_is_waited_for_until_the_time_is_up(run, cluster):
    cluster.commit("billing", QUEUE, 1)
    cluster.add_member("billing", "10.0.0.1@one", None)

    waited = run(*DRAIN, "--timeout", "0.1")

    assert waited.exit_code == 1
    assert "nothing came in; waiting: group billing: 1 message (1 member)" in waited.stdout
    assert waited.stdout.splitlines()[-1] == "broker broker-b is not drained after 0 s; it stays read-only"


def test_another_broker_that_does_not_answer_does_not_end_the_wait(run, cluster):
    cluster.fault(broker="broker-a", times=None, answer=Reaction.DISCONNECT)

    drained = run(*DRAIN)

    assert drained.stdout.splitlines()[-1] == "broker broker-b may be stopped"


def test_without_an_answer_nothing_is_changed(run, cluster):
    refused = run("broker", "drain", "broker-b")

    assert refused.exit_code == 1
    assert "give --yes" in refused.stderr
    assert run("health").exit_code == 0
