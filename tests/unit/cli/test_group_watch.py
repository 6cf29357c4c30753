"""``rmqtools group watch``: rates between two looks at the cluster in this process."""

import json

import pytest

from rmqtools import MessageQueue
from rmqtools.cli import group_watch

FIRST, SECOND = (MessageQueue("orders", name, 0) for name in ("broker-a", "broker-b"))


@pytest.fixture
def second_look(run, cluster, monkeypatch):
    """``second_look(change)``: the line of a look after a change, at a group that has consumed 1 of 100."""
    cluster.create_topic("orders", queues=1)
    for queue in (FIRST, SECOND):
        cluster.store("orders", *[b"x"] * 100, queue=queue)
    cluster.commit("billing", FIRST, 1)

    def look(change):
        class Meanwhile:
            def wait(self, seconds):
                change()

        monkeypatch.setattr(group_watch, "Event", Meanwhile)
        watched = run("group", "watch", "billing", "--looks", "2", "--json")
        return json.loads(watched.stdout.splitlines()[1])

    return look


def test_a_first_commit_on_a_queue_makes_no_spike(second_look, cluster):
    line = second_look(lambda: cluster.commit("billing", SECOND, 90))

    assert (line["lag"], line["in_rate"], line["out_rate"]) == (109, 0.0, 0.0)


def test_messages_that_came_in_and_were_consumed_are_counted(second_look, cluster):
    def change():
        cluster.store("orders", b"x", b"x", queue=SECOND)
        cluster.commit("billing", FIRST, 5)

    line = second_look(change)

    assert line["lag"] == 99 + 100 + 2 - 4
    assert line["out_rate"] == pytest.approx(2 * line["in_rate"])
    assert line["in_rate"] > 0
