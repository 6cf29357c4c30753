"""A member that waits for another one's locks, or for a broker that grants none."""

import asyncio
from dataclasses import dataclass

import pytest

from rmqtools import PushConsumerConfig
from rmqtools.aio import PushConsumer
from rmqtools.model.codes import RequestCode
from rmqtools.testing import FakeCluster
from tests.support.skipping_loop import run_skipping
from tests.unit.engine.consumer.push_scene import until

TOPICS = [f"T{number}" for number in range(8)]
BROKERS = ("broker-a", "broker-b")


@dataclass(frozen=True)
class TakesAll:
    """A member whose lists differ from the others': it computes that every queue is its own."""

    name: str = "AVG"

    def allocate(self, group, client_id, queues, client_ids):
        return list(queues)


async def listen(messages, context) -> None: ...


def member(cluster: FakeCluster, name: str) -> PushConsumer:
    config = PushConsumerConfig(
        name_server=cluster.name_server, group="g", instance_name=name, orderly=True, request_timeout=0.2
    )
    consumer = PushConsumer(config, strategy=TakesAll())
    for topic in TOPICS:
        consumer.subscribe(topic, listen)
    return consumer


def held(consumer: PushConsumer) -> int:
    return sum(queue.topic in TOPICS for queue in consumer.queues)


def asked_for_locks(cluster: FakeCluster, name: str) -> int:
    asked = cluster.requests(RequestCode.LOCK_BATCH_MQ)
    return sum(f'@{name}"'.encode() in (request.body or b"") for request in asked)


def test_a_member_that_is_refused_locks_asks_each_broker_twice_a_second_for_all_its_topics(caplog):
    async def scenario():
        async with FakeCluster(BROKERS) as cluster:
            for topic in TOPICS:
                cluster.create_topic(topic, queues=4)
            async with member(cluster, "owner") as owner, member(cluster, "waits") as waits:
                await until(lambda: held(owner) == 64)
                await asyncio.sleep(1)
                before = asked_for_locks(cluster, "waits")
                await asyncio.sleep(10)
                assert 10 * len(BROKERS) <= asked_for_locks(cluster, "waits") - before <= 21 * len(BROKERS)
                assert caplog.text.count("locks_refused") == 1
                await owner.close()
                await asyncio.sleep(1)
                assert held(waits) == 64

    with caplog.at_level("INFO"):
        run_skipping(scenario)
    assert caplog.text.count("locks_granted") == 1


def test_the_log_names_a_broker_that_grants_no_locks_once_and_says_when_it_answers_again(caplog):
    async def scenario():
        async with FakeCluster(BROKERS) as cluster:
            for topic in TOPICS:
                cluster.create_topic(topic, queues=4)
            cluster.stop("broker-b")
            async with member(cluster, "only") as only:
                await asyncio.sleep(10)
                assert held(only) == 32
                assert caplog.text.count("lock_failed") == 1
                cluster.restart("broker-b")
                await asyncio.sleep(5)
                assert held(only) == 64

    with caplog.at_level("INFO"):
        run_skipping(scenario)
    assert caplog.text.count("lock_answered") == 1


def test_a_start_that_stays_unknown_is_in_the_log_once(caplog):
    async def scenario():
        async with FakeCluster() as cluster:
            cluster.create_topic("T0", queues=1)
            cluster.fault(code=RequestCode.QUERY_CONSUMER_OFFSET, answer=None, times=None)
            async with member(cluster, "only"):
                await asyncio.sleep(10)

    run_skipping(scenario)
    assert len([line for line in caplog.messages if "start_offset_unknown" in line and "T0" in line]) == 1


@pytest.mark.parametrize("count", [1, 100])
def test_subscriptions_that_change_together_cause_one_heartbeat(count):
    async def scenario():
        async with FakeCluster() as cluster:
            cluster.create_topic("T0")
            async with member(cluster, "only") as consumer:
                await asyncio.sleep(5)
                before = len(cluster.requests(RequestCode.HEART_BEAT))
                for number in range(count):
                    consumer.subscribe(f"U{number}", listen)
                await asyncio.sleep(5)
                sent = cluster.requests(RequestCode.HEART_BEAT)[before:]
                assert [f'"U{count - 1}"'.encode() in request.body for request in sent] == [True]

    run_skipping(scenario)
