"""What administration finds out about a group on a cluster in this process."""

import pytest

from rmqtools import Admin, ClientConfig, MessageQueue, Perm, QueueData
from rmqtools.engine.admin.groups import unreadable_queues
from rmqtools.errors import BrokerError
from rmqtools.group import DeadLetters
from rmqtools.model.group_view import UnreadableQueues
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster, RequestCode

FIRST, SECOND = (MessageQueue("orders", "broker-a", number) for number in range(2))


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        cluster.create_topic("orders", queues=2)
        cluster.create_group("billing")
        for second in (1, 2, 3):
            cluster.store("orders", b"x", queue=FIRST, store_timestamp_ms=second * 1000)
        yield cluster


@pytest.mark.parametrize(
    ("consumed", "oldest_ms"), [pytest.param(1, 2000, id="some"), pytest.param(3, None, id="everything")]
)
def test_the_age_of_a_queue_is_that_of_its_first_message_not_consumed(cluster, admin, consumed, oldest_ms):
    cluster.commit("billing", FIRST, consumed)
    cluster.commit("billing", SECOND, 0)

    with_ages, without = admin.fetch_group("billing", ages=True), admin.fetch_group("billing")

    ages = {queue: each.oldest_ms for queue, each in with_ages.progress.items()}
    assert ages == {FIRST: oldest_ms, SECOND: None}
    assert {each.oldest_ms for each in without.progress.values()} == {None}


@pytest.mark.parametrize("perm", [Perm.WRITE, 0], ids=["write-only", "closed"])
def test_a_topic_that_may_not_be_read_has_queues_that_nobody_reads_and_is_not_missing(cluster, admin, perm):
    cluster.commit("billing", FIRST, 1)
    cluster.create_topic("orders", queues=2, perm=perm)

    view = admin.fetch_group("billing")

    hidden = UnreadableQueues(topic="orders", broker_name="broker-a", readable=0, written=2, messages=3)
    assert (view.missing_topics, view.unreadable) == ((), (hidden,))


def test_a_topic_that_one_broker_keeps_closed_is_read_from_the_others(cluster, admin):
    open_, closed = (QueueData(name, 2, 2, perm) for name, perm in (("a", 6), ("b", 0)))

    assert unreadable_queues("orders", [open_, closed]) == []


def test_dead_letters_are_counted_with_the_time_of_the_last_one(cluster, admin):
    before = admin.fetch_dead_letters("billing")
    cluster.create_topic("%DLQ%billing", queues=1)
    for second in (5, 7):
        cluster.store("%DLQ%billing", b"x", store_timestamp_ms=second * 1000)

    assert before == DeadLetters()
    assert admin.fetch_dead_letters("billing") == DeadLetters(count=2, newest_ms=7000)


def test_ages_of_a_known_progress_are_read_apart(cluster, admin):
    cluster.commit("billing", FIRST, 1)
    progress = admin.fetch_progress("billing")

    ages = {queue: each.oldest_ms for queue, each in admin.fetch_ages(progress).items()}
    assert ages == {FIRST: 2000, SECOND: None}


def test_a_member_that_no_broker_knows_is_an_error_of_all_brokers_with_the_last_ones_reason():
    with FakeCluster(["broker-a", "broker-b"]) as cluster:
        refusals = {name: response(1, 0, remark=f"not at {name}") for name in ("broker-a", "broker-b")}
        for name, refusal in refusals.items():
            cluster.fault(code=RequestCode.GET_CONSUMER_RUNNING_INFO, broker=name, times=None, answer=refusal)
        with (
            Admin(ClientConfig(name_server=cluster.name_server)) as admin,
            pytest.raises(BrokerError, match="not at broker-b") as caught,
        ):
            admin.fetch_running_info("billing", "gone")

        assert f"(asked: {cluster.addr('broker-a')}, {cluster.addr('broker-b')})" in str(caught.value)
