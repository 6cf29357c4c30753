"""Findings about brokers, and what a drain waits for."""

import pytest

from rmqtools.model.broker_view import BrokerBacklog, BrokerState, GroupBacklog
from rmqtools.model.group_view import FindingKind
from rmqtools.policy.broker_check import awaited, broker_note, check_broker, check_gone, incoming, left_behind

WELL = {
    "brokerActive": "true",
    "commitLogDiskRatio_/a": "0.2",
    "commitLogDiskRatio_/b": "0.84",
    "pageCacheLockTimeMills": "999",
    "sendThreadPoolQueueHeadWaitTimeMills": "199",
}


def state(**changes):
    return BrokerState(broker_name="broker-a", statistics=WELL, **changes)


def test_a_broker_that_is_well_has_no_finding():
    assert check_broker(state()) == []
    assert broker_note(state()) == ""


@pytest.mark.parametrize(
    ("statistics", "kind", "text"),
    [
        ({"brokerActive": "false"}, FindingKind.BROKER_INACTIVE, "not active"),
        ({"commitLogDiskRatio_/b": "0.9"}, FindingKind.DISK_FULL, "disk 90% full"),
        (
            {"commitLogDiskRatio": "0.85"},
            FindingKind.DISK_NEARLY_FULL,
            "disk 85% full: old messages are deleted before their time",
        ),
        ({"pageCacheLockTimeMills": "1000"}, FindingKind.PAGE_CACHE_BUSY, "page cache busy for 1000 ms"),
        ({"sendThreadPoolQueueHeadWaitTimeMills": "200"}, FindingKind.SENDS_WAIT, "sends wait for 200 ms"),
    ],
)
def test_each_limit_of_a_broker_is_a_finding(statistics, kind, text):
    (found,) = check_broker(BrokerState(broker_name="broker-a", statistics=WELL | statistics))

    assert (found.kind, found.text, found.subject) == (kind, f"broker-a (master): {text}", "broker-a")


def test_the_error_of_a_silent_broker_is_its_only_finding():
    (found,) = check_broker(
        BrokerState(broker_name="broker-a", broker_id=1, error="no answer", is_read_only=True)
    )

    assert (found.kind, found.text) == (FindingKind.BROKER_SILENT, "broker-a (slave 1): no answer")


def test_a_master_is_read_only_and_its_slave_is_not():
    assert [found.kind for found in check_broker(state(is_read_only=True))] == [FindingKind.BROKER_READ_ONLY]
    assert check_broker(state(is_read_only=True, broker_id=1)) == []


def test_a_slave_that_is_not_active_is_well():
    idle = BrokerState(broker_name="broker-a", broker_id=1, statistics=WELL | {"brokerActive": "false"})

    assert check_broker(idle) == []


@pytest.mark.parametrize("answer", [{"statistics": WELL}, {"error": "no answer"}])
def test_a_slave_whose_master_is_gone_says_so_first(answer):
    first = check_broker(BrokerState(broker_name="broker-a", broker_id=1, is_alone=True, **answer))[0]

    assert first.kind is FindingKind.MASTER_MISSING
    assert first.text == "broker-a (slave 1): has no master: the broker takes no messages"


def test_a_broker_that_the_name_server_has_lost_is_gone_since_it_was_seen():
    found = check_gone([state()], {"broker-a": "12:00:00", "broker-b": "11:59:00"})

    assert [(one.kind, one.text) for one in found] == [
        (FindingKind.BROKER_GONE, "broker-b: gone since 11:59:00")
    ]


def test_new_messages_are_counted_by_topic_and_new_topics_are_not_taken_for_messages():
    before = BrokerBacklog(broker_name="broker-a", ends={"orders": 5, "quiet": 7})
    after = BrokerBacklog(broker_name="broker-a", ends={"orders": 8, "quiet": 7, "new": 9})

    assert incoming(before, after) == {"orders": 3}


def test_groups_with_members_are_awaited_and_those_without_are_left_behind():
    backlog = BrokerBacklog(
        broker_name="broker-a",
        groups={"billing": GroupBacklog(lag=3, members=2), "audit": GroupBacklog(lag=4, members=0)},
        delayed=1,
        timed=2,
        half=5,
        popped=6,
    )

    assert awaited(backlog) == [
        "group billing: 3 messages (2 members)",
        "1 delayed message",
        "2 timer messages",
        "5 half messages",
        "6 popped messages",
    ]
    assert left_behind(backlog) == ["group audit: 4 messages, offline"]
