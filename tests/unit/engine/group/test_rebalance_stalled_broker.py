"""A broker that stands still and goes on lists members again for each connection that they have closed."""

import asyncio

import pytest

from rmqtools import PullConsumerConfig
from rmqtools.aio import PullConsumer
from rmqtools.testing import FakeCluster
from tests.support.skipping_loop import run_skipping

TOPIC, GROUP = "T", "g"
QUEUES = 4


def member(cluster: FakeCluster, name: str) -> PullConsumer:
    config = PullConsumerConfig(
        name_server=cluster.name_server,
        group=GROUP,
        instance_name=name,
        request_timeout=1.0,
        heartbeat_broker_interval=1.0,
        rebalance_interval=5.0,
    )
    consumer = PullConsumer(config)
    consumer.subscribe(TOPIC)
    return consumer


async def stand_still(cluster: FakeCluster, *brokers: str, seconds: float) -> None:
    for broker in brokers:
        cluster.freeze(broker)
    await asyncio.sleep(seconds)
    for broker in brokers:
        cluster.thaw(broker)


def is_doubled(cluster: FakeCluster, broker: str) -> bool:
    listed = cluster.members(GROUP, broker=broker)
    return len(set(listed)) < len(listed)


def owners(*members: PullConsumer) -> list[int]:
    """How often each queue of the topic is held, counted over the members."""
    held = [(queue.broker_name, queue.queue_id) for one in members for queue in one.assignment()]
    return [held.count((broker, number)) for broker in ("broker-a", "broker-b") for number in range(QUEUES)]


@pytest.mark.process
@pytest.mark.parametrize("brokers", [("broker-a",), ("broker-a", "broker-b")], ids=["one", "all"])
def test_members_own_every_queue_once_though_brokers_list_them_again(brokers):
    async def scenario():
        async with FakeCluster(("broker-a", "broker-b")) as cluster:
            cluster.create_topic(TOPIC, queues=QUEUES)
            async with member(cluster, "one") as one, member(cluster, "two") as two:
                await asyncio.sleep(12)
                assert owners(one, two) == [1] * 8
                await stand_still(cluster, *brokers, seconds=15)
                await asyncio.sleep(7)
                assert all(is_doubled(cluster, broker) for broker in brokers)
                assert owners(one, two) == [1] * 8

    run_skipping(scenario)


@pytest.mark.process
def test_a_member_that_starts_beside_a_broker_that_stands_still_owns_every_queue_soon_after():
    async def scenario():
        async with FakeCluster(("broker-a", "broker-b")) as cluster:
            cluster.create_topic(TOPIC, queues=QUEUES)
            still = asyncio.create_task(stand_still(cluster, "broker-a", seconds=11))
            async with member(cluster, "one") as one:
                assert owners(one)[QUEUES:] == [1] * QUEUES  # those of the healthy broker
                await still
                await asyncio.sleep(7)
                assert is_doubled(cluster, "broker-a")
                assert owners(one) == [1] * 8

    run_skipping(scenario)


@pytest.mark.process
def test_the_entries_of_closed_connections_go_after_two_minutes():
    async def scenario():
        async with FakeCluster() as cluster:
            cluster.create_topic(TOPIC, queues=QUEUES)
            async with member(cluster, "one"):
                await stand_still(cluster, "broker-a", seconds=11)
                await asyncio.sleep(1)
                assert is_doubled(cluster, "broker-a")
                cluster.advance(120)
                await asyncio.sleep(40)  # connections that wait for pulls are closed later
                assert not is_doubled(cluster, "broker-a")

    run_skipping(scenario)
