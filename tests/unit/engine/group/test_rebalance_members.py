"""Members of one group on a fake cluster: two owners of a queue, refused locks, brokers that stand still."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from rmqtools.aio import PullConsumer, PushConsumer
from rmqtools.allocate import AllocateAveragely, AllocateMessageQueueStrategy
from rmqtools.model.codes import RequestCode
from rmqtools.testing import FakeCluster
from tests.support.skipping_loop import run_skipping
from tests.unit.engine.consumer.pull_scene import config, push_config
from tests.unit.engine.consumer.push_scene import until

TOPICS = ("T0", "T1", "T2")
BROKERS = ("broker-a", "broker-b")
QUEUES = 4  # of a topic on each broker


@dataclass(frozen=True)
class TakesAll:
    """A member whose lists differ from the others': it computes that every queue is its own."""

    name: str = "AVG"

    def allocate(self, group, client_id, queues, client_ids):
        return list(queues)


async def listen(messages, context) -> None: ...


def pushing(
    cluster: FakeCluster,
    name: str,
    listener=listen,
    *,
    strategy: AllocateMessageQueueStrategy = TakesAll(),
    **settings: Any,
) -> PushConsumer:
    given: dict[str, Any] = {"instance_name": name, "orderly": True, "request_timeout": 0.2}
    consumer = PushConsumer(push_config(cluster, **(given | settings)), strategy=strategy)
    for topic in TOPICS:
        consumer.subscribe(topic, listener)
    return consumer


def held(consumer: PushConsumer) -> int:
    return sum(queue.topic in TOPICS for queue in consumer.queues)


def asked_for_locks(cluster: FakeCluster, name: str) -> int:
    asked = cluster.requests(RequestCode.LOCK_BATCH_MQ)
    return sum(f'@{name}"'.encode() in (request.body or b"") for request in asked)


@pytest.mark.parametrize(("orderly", "times"), [(False, 2), (True, 1)], ids=["any-order", "orderly"])
async def test_a_queue_with_two_owners_is_consumed_twice_and_with_a_lock_once(orderly, times):
    heard, may_end = Counter[Any](), asyncio.Event()

    async def hear(messages, context) -> None:
        heard.update(message.body for message in messages)
        await may_end.wait()

    async with FakeCluster() as cluster:
        cluster.create_topic("T0", queues=1)
        cluster.store("T0", b"only")
        one, two = (pushing(cluster, name, hear, orderly=orderly) for name in ("one", "two"))
        async with one, two:
            await asyncio.sleep(5)  # a refused member asks for the lock again
            counts = sorted([held(one), held(two)])
            may_end.set()

    assert counts == sorted([1, times - 1])
    assert heard == {b"only": times}


async def test_a_message_that_is_consumed_while_its_queue_changes_hands_comes_once():
    heard, may_end = list[tuple[str, bytes]](), asyncio.Event()

    def hears(name: str):
        async def hear(messages, context) -> None:
            heard.append((name, messages[0].body))
            await may_end.wait()

        return hear

    def member(cluster: FakeCluster, name: str) -> PushConsumer:
        return pushing(cluster, name, hears(name), strategy=AllocateAveragely())

    async with FakeCluster() as cluster:
        cluster.create_topic("T0", queues=1)
        cluster.store("T0", *[b"%d" % number for number in range(6)])
        async with member(cluster, "loses") as loses:
            await until(lambda: heard)
            async with member(cluster, "gets"):  # sorts before it
                await until(lambda: held(loses) == 0)
                await asyncio.sleep(8)  # the first attempts to give the queue up are over
                may_end.set()
                await until(lambda: len(heard) == 6)

    assert heard == [("loses", b"0"), *[("gets", b"%d" % number) for number in range(1, 6)]]


async def test_a_member_that_is_refused_locks_asks_each_broker_twice_a_second_for_all_its_topics(caplog):
    caplog.set_level("INFO")
    async with FakeCluster(BROKERS) as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, queues=QUEUES)
        async with pushing(cluster, "owner") as owner, pushing(cluster, "waits") as waits:
            await until(lambda: held(owner) == 24)
            await asyncio.sleep(1)
            before = asked_for_locks(cluster, "waits")
            await asyncio.sleep(10)
            assert 10 * len(BROKERS) <= asked_for_locks(cluster, "waits") - before <= 21 * len(BROKERS)
            assert caplog.text.count("locks_refused") == 1
            await owner.close()
            await asyncio.sleep(1)
            assert held(waits) == 24
    assert caplog.text.count("locks_granted") == 1


async def test_a_lock_that_is_granted_to_a_member_that_leaves_is_given_back():
    """Leaving cancels its round and not its request: the broker would keep the lock for a minute."""
    async with FakeCluster() as cluster:
        cluster.create_topic("T0", queues=1)
        leaving = pushing(cluster, "leaves", request_timeout=5.0)
        async with pushing(cluster, "owner") as owner, leaving as leaves:
            await until(lambda: (held(owner), asked_for_locks(cluster, "leaves")) == (1, 1))
            late = cluster.fault(code=RequestCode.LOCK_BATCH_MQ, delay=2.0)
            await owner.close()
            await until(late.fired)
            await leaves.close()
        await asyncio.sleep(2)  # until it is handled
        async with pushing(cluster, "stays") as stays:
            await asyncio.sleep(2)
            assert held(stays) == 1


async def test_the_log_names_a_broker_that_grants_no_locks_once_and_says_when_it_answers_again(caplog):
    caplog.set_level("INFO")
    async with FakeCluster(BROKERS) as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, queues=QUEUES)
        cluster.stop("broker-b")
        async with pushing(cluster, "only") as only:
            await asyncio.sleep(10)
            assert held(only) == 12
            assert caplog.text.count("lock_failed") == 1
            cluster.restart("broker-b")
            await asyncio.sleep(5)
            assert held(only) == 24
    assert caplog.text.count("lock_answered") == 1


async def test_a_start_that_stays_unknown_is_in_the_log_once(caplog):
    async with FakeCluster() as cluster:
        cluster.create_topic("T0", queues=1)
        cluster.fault(code=RequestCode.QUERY_CONSUMER_OFFSET, answer=None, times=None)
        async with pushing(cluster, "only"):
            await asyncio.sleep(10)

    assert len([line for line in caplog.messages if "start_offset_unknown" in line and "T0" in line]) == 1


async def test_subscriptions_that_change_together_cause_one_heartbeat():
    async with FakeCluster() as cluster:
        cluster.create_topic("T0")
        async with pushing(cluster, "only") as consumer:
            await asyncio.sleep(2)
            before = len(cluster.requests(RequestCode.HEART_BEAT))
            for number in range(20):
                consumer.subscribe(f"U{number}", listen)
            await asyncio.sleep(2)
            (sent,) = cluster.requests(RequestCode.HEART_BEAT)[before:]
            assert b'"U19"' in sent.body


def pulling(cluster: FakeCluster, name: str) -> PullConsumer:
    settings = {"request_timeout": 1.0, "heartbeat_broker_interval": 1.0, "rebalance_interval": 5.0}
    consumer = PullConsumer(config(cluster, instance_name=name, **settings))
    consumer.subscribe("T0")
    return consumer


async def stand_still(cluster: FakeCluster, *brokers: str, seconds: float) -> None:
    for broker in brokers:
        cluster.freeze(broker)
    await asyncio.sleep(seconds)
    for broker in brokers:
        cluster.thaw(broker)


def lists_twice(cluster: FakeCluster, broker: str) -> bool:
    """Return whether a broker lists members again for connections that they have closed."""
    listed = cluster.members("g", broker=broker)
    return len(set(listed)) < len(listed)


def owners(*members: PullConsumer) -> list[int]:
    """How often each queue of the topic is held, counted over the members."""
    assigned = [(queue.broker_name, queue.queue_id) for one in members for queue in one.assignment()]
    return [assigned.count((broker, number)) for broker in BROKERS for number in range(QUEUES)]


@pytest.mark.process
@pytest.mark.parametrize("brokers", [("broker-a",), BROKERS], ids=["one", "all"])
def test_members_own_every_queue_once_though_brokers_list_them_again(brokers):
    async def scenario():
        async with FakeCluster(BROKERS) as cluster:
            cluster.create_topic("T0", queues=QUEUES)
            async with pulling(cluster, "one") as one, pulling(cluster, "two") as two:
                await asyncio.sleep(12)
                assert owners(one, two) == [1] * 8
                await stand_still(cluster, *brokers, seconds=15)
                await asyncio.sleep(7)
                assert all(lists_twice(cluster, broker) for broker in brokers)
                assert owners(one, two) == [1] * 8

    run_skipping(scenario)


@pytest.mark.process
def test_a_member_that_starts_beside_a_broker_that_stands_still_owns_every_queue_soon_after():
    async def scenario():
        async with FakeCluster(BROKERS) as cluster:
            cluster.create_topic("T0", queues=QUEUES)
            still = asyncio.create_task(stand_still(cluster, "broker-a", seconds=11))
            async with pulling(cluster, "one") as one:
                assert owners(one)[QUEUES:] == [1] * QUEUES  # those of the healthy broker
                await still
                await asyncio.sleep(7)
                assert lists_twice(cluster, "broker-a")
                assert owners(one) == [1] * 8

    run_skipping(scenario)


@pytest.mark.process
def test_the_entries_of_closed_connections_go_after_two_minutes():
    async def scenario():
        async with FakeCluster() as cluster:
            cluster.create_topic("T0", queues=QUEUES)
            async with pulling(cluster, "one"):
                await stand_still(cluster, "broker-a", seconds=11)
                await asyncio.sleep(1)
                assert lists_twice(cluster, "broker-a")
                cluster.advance(120)
                await asyncio.sleep(40)  # connections that wait for pulls are closed later
                assert not lists_twice(cluster, "broker-a")

    run_skipping(scenario)
