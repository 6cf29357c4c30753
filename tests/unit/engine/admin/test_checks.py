"""Findings of groups on a cluster in this process: what is healthy is not reported."""

import asyncio
import re
from dataclasses import replace

import pytest

from rmqtools import ClientConfig, MessageQueue, aio
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.group import FindingKind, GroupLimits
from rmqtools.model.group import KVTable, SubscriptionData
from rmqtools.model.running_info import ConsumerRunningInfo, PopProcessQueueInfo, ProcessQueueInfo
from rmqtools.policy.group_check import SETTLE_SECONDS
from rmqtools.protocol.wire.bodies import format_body
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster, RequestCode

FIRST, SECOND = (MessageQueue("orders", "broker-a", number) for number in range(2))
SUBSCRIBED = (SubscriptionData(topic="orders"),)


def consumed(cluster: FakeCluster) -> None:
    """Store a message in each queue, which the group has consumed."""
    cluster.create_topic("orders", queues=2)
    cluster.create_group("billing")
    for queue in (FIRST, SECOND):
        cluster.store("orders", b"x", queue=queue)
        cluster.commit("billing", queue, 1)


@pytest.fixture
def cluster():
    with FakeCluster(auto_create_topics=False) as cluster:
        consumed(cluster)
        yield cluster


def test_members_that_pop_all_queues_of_a_broker_own_each_of_them(cluster, admin):
    everything = MessageQueue("orders", "broker-a", -1)
    for client_id in ("10.0.0.1@one", "10.0.0.2@two"):
        told = ConsumerRunningInfo(
            subscription_set=SUBSCRIBED, mq_pop_table={everything: PopProcessQueueInfo()}
        )
        cluster.add_member("billing", client_id, told)

    check = admin.check_group("billing")

    assert check.findings == ()
    assert check.view.owners(FIRST) == check.view.owners(SECOND) == ["10.0.0.1@one", "10.0.0.2@two"]


def quiet(*, fetched: int, seconds: float) -> ConsumerRunningInfo:
    """What a member says that has consumed nothing for a while, and has fetched the message at an offset."""
    now_ms = SYSTEM_CLOCK.now_ms()
    first = ProcessQueueInfo(
        cached_msg_count=1,
        cached_msg_min_offset=fetched,
        cached_msg_max_offset=fetched,
        last_pull_timestamp=now_ms,
        last_consume_timestamp=now_ms - int(seconds * 1000),
    )
    second = ProcessQueueInfo(last_pull_timestamp=now_ms, last_consume_timestamp=now_ms)
    return ConsumerRunningInfo(subscription_set=SUBSCRIBED, mq_table={FIRST: first, SECOND: second})


def test_a_message_that_has_just_ended_a_quiet_time_blocks_no_queue(cluster, admin):
    cluster.store("orders", b"new", queue=FIRST)
    cluster.add_member("billing", "10.0.0.1@one", quiet(fetched=1, seconds=150))

    assert admin.check_group("billing").findings == ()


def test_a_message_that_was_fetched_long_ago_and_is_not_consumed_blocks_its_queue(cluster, admin):
    cluster.store("orders", b"old", queue=FIRST, store_timestamp_ms=SYSTEM_CLOCK.now_ms() - 100_000)
    cluster.add_member("billing", "10.0.0.1@one", quiet(fetched=1, seconds=150))

    (finding,) = admin.check_group("billing").findings
    assert finding.kind == FindingKind.QUEUE_BLOCKED
    assert re.search(r"has consumed none for 10\d s", finding.text)


async def test_a_queue_of_a_deleted_topic_is_no_obstacle_to_a_look():
    told = quiet(fetched=1, seconds=150)
    gone = {MessageQueue("gone", "broker-a", 0): told.mq_table[FIRST]}
    async with (
        FakeCluster(auto_create_topics=False) as cluster,
        aio.Admin(ClientConfig(name_server=cluster.name_server)) as admin,
    ):
        consumed(cluster)
        cluster.add_member("billing", "10.0.0.1@one", replace(told, mq_table={**told.mq_table, **gone}))
        check = await admin.check_group("billing")

    assert "queue_blocked" in {one.kind for one in check.findings}


def test_ages_go_by_the_clocks_of_the_brokers(cluster, admin):
    cluster.advance(600)
    cluster.store("orders", b"new", queue=FIRST)

    check = admin.check_group("billing", limits=GroupLimits(max_age=60))

    assert admin.fetch_clocks() == check.view.clocks == {"broker-a": pytest.approx(600, abs=2)}
    assert check.view.age(FIRST) == pytest.approx(0, abs=3)
    assert [one.kind for one in check.findings] == [FindingKind.NO_MEMBERS]


def test_a_message_that_is_old_by_the_clock_of_its_broker_is_found(cluster, admin):
    stored = SYSTEM_CLOCK.now_ms() + 500_000  # a hundred seconds ago
    cluster.advance(600)
    cluster.store("orders", b"old", queue=FIRST, store_timestamp_ms=stored)

    found = admin.check_group("billing", limits=GroupLimits(max_age=60)).findings

    assert "messages_old" in {one.kind for one in found}


@pytest.mark.parametrize("seconds", [-600, 600])
def test_times_of_a_member_that_does_not_report_its_clock_go_by_the_brokers(cluster, admin, seconds):
    now_ms = SYSTEM_CLOCK.now_ms() + seconds * 1000
    started = {"bootTimestamp": str(now_ms), "runtime": "[ 0 days, 0 hours, 0 minutes, 0 seconds ]"}
    answer = response(0, 0, body=format_body(KVTable(table=started)))
    cluster.fault(code=RequestCode.GET_BROKER_RUNTIME_INFO, times=None, answer=answer)
    cluster.store("orders", b"new", queue=FIRST, store_timestamp_ms=now_ms)
    cluster.add_member("billing", "10.0.0.1@java", shifted(quiet(fetched=1, seconds=1), seconds))

    check = admin.check_group("billing")

    assert check.view.clocks == {"broker-a": pytest.approx(seconds, abs=2)}
    assert check.findings == ()


@pytest.mark.parametrize(("seconds", "words"), [(-30, "30 s behind"), (30, "30 s ahead of")])
def test_a_member_whose_clock_differs_is_named_and_its_times_go_by_its_clock(cluster, admin, seconds, words):
    cluster.store("orders", b"new", queue=FIRST)
    told = shifted(quiet(fetched=1, seconds=1), seconds)
    own_ms = SYSTEM_CLOCK.now_ms() + seconds * 1000
    told = replace(told, properties={"PROP_RMQTOOLS_NOW_MS": str(own_ms)})
    cluster.add_member("billing", "10.0.0.1@one", told)

    limits = GroupLimits(listener=10, fetch=10)
    (finding,) = admin.check_group("billing", limits=limits).findings

    assert (finding.kind, finding.subject) == (FindingKind.CLOCK_DIFFERS, "10.0.0.1@one")
    assert f"the clock of member 10.0.0.1@one is {words} those of the brokers" in finding.text


def shifted(told: ConsumerRunningInfo, seconds: float) -> ConsumerRunningInfo:
    """Return what a member says whose clock is ahead."""
    moved = {
        queue: replace(
            state,
            last_pull_timestamp=state.last_pull_timestamp + int(seconds * 1000),
            last_consume_timestamp=state.last_consume_timestamp + int(seconds * 1000),
        )
        for queue, state in told.mq_table.items()
    }
    return replace(told, mq_table=moved)


def owner(*queues: MessageQueue) -> ConsumerRunningInfo:
    now_ms = SYSTEM_CLOCK.now_ms()
    held = ProcessQueueInfo(last_pull_timestamp=now_ms, last_consume_timestamp=now_ms)
    return ConsumerRunningInfo(subscription_set=SUBSCRIBED, mq_table=dict.fromkeys(queues, held))


async def test_a_queue_that_waits_for_its_new_owner_is_no_finding_unless_it_goes_on_waiting():
    async with FakeCluster() as cluster, aio.Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        consumed(cluster)
        cluster.add_member("billing", "10.0.0.1@one", owner(FIRST))
        looking = asyncio.create_task(admin.check_group("billing"))
        await asyncio.sleep(SETTLE_SECONDS / 2)
        cluster.add_member("billing", "10.0.0.1@one", owner(FIRST, SECOND))
        during = await looking
        cluster.add_member("billing", "10.0.0.1@one", owner(FIRST))
        (lasting,) = (await admin.check_group("billing")).findings

    assert during.findings == ()
    assert set(during.view.members[0].queues) == {FIRST, SECOND}
    assert (lasting.kind, lasting.queues) == (FindingKind.QUEUE_UNOWNED, (SECOND,))
