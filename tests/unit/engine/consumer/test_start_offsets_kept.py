"""The place where a group begins: kept by members that stop before they had any message, and by a start."""

import asyncio

import pytest

from rmqtools import PullConsumer, PullConsumerConfig, PushConsumer, PushConsumerConfig, aio
from rmqtools.model.codes import RequestCode
from rmqtools.model.queue import MessageQueue
from rmqtools.testing import FakeCluster, Reaction
from tests.support.cluster_scene import wait_until
from tests.support.skipping_loop import run_skipping
from tests.unit.engine.consumer.push_scene import until

QUEUE = MessageQueue("T", "broker-a", 0)
MODELS = ["CLUSTERING", "BROADCASTING"]


@pytest.fixture
def old_topic(fake_rocketmq):
    """A cluster with a topic of which brokers have deleted the first messages."""
    fake_rocketmq.create_topic("T", queues=1)
    for number in range(8):
        fake_rocketmq.store("T", b"%d" % number)
    fake_rocketmq.begin_at(QUEUE, 4)
    return fake_rocketmq


@pytest.fixture
def settings(old_topic, tmp_path):
    return {
        "name_server": old_topic.name_server,
        "group": "g",
        "instance_name": "same",
        "offset_store_path": str(tmp_path / "offsets.json"),
    }


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("orderly", [False, True], ids=["any-order", "orderly"])
def test_a_push_member_that_stopped_while_idle_gets_what_came_until_its_restart(
    old_topic, settings, model, orderly
):
    heard: list[bytes] = []

    def member() -> PushConsumer:
        consumer = PushConsumer(PushConsumerConfig(message_model=model, orderly=orderly, **settings))
        consumer.subscribe("T", lambda messages, _: heard.extend(one.body for one in messages))
        return consumer

    with member():
        pass
    old_topic.store("T", b"between")
    with member():
        wait_until(lambda: heard)
    assert heard == [b"between"]


@pytest.mark.parametrize("model", MODELS)
def test_a_pull_member_that_never_polled_gets_what_came_until_its_restart(old_topic, settings, model):
    def member():
        consumer = PullConsumer(PullConsumerConfig(message_model=model, **settings))
        consumer.subscribe("T")
        return consumer

    with member():
        pass
    old_topic.store("T", b"between")
    with member() as consumer:
        assert [message.body for message in consumer.poll(10)] == [b"between"]


def test_without_auto_commit_a_start_stores_no_offset(old_topic, settings):
    with PullConsumer(PullConsumerConfig(auto_commit=False, **settings)) as consumer:
        consumer.subscribe("T")
        wait_until(lambda: consumer.queues)
        consumer.poll(0)
    assert old_topic.committed("g", QUEUE) is None


async def quiet(messages, context) -> None: ...


def push(cluster: FakeCluster, listener, **settings) -> aio.PushConsumer:
    consumer = aio.PushConsumer(PushConsumerConfig(name_server=cluster.name_server, group="g", **settings))
    consumer.subscribe("T", listener)
    return consumer


def test_a_message_sent_after_the_start_arrives_though_the_broker_was_slow_to_say_where_the_group_is():
    heard: list[bytes] = []

    async def listen(messages, context) -> None:
        heard.extend(one.body for one in messages)

    async def scenario():
        async with FakeCluster() as cluster:
            cluster.create_topic("T", queues=1)
            cluster.begin_at(QUEUE, 5)
            cluster.fault(code=RequestCode.QUERY_CONSUMER_OFFSET, topic="T", delay=1.0)
            async with push(cluster, listen):
                cluster.store("T", b"at once")
                await until(lambda: heard)

    run_skipping(scenario)
    assert heard == [b"at once"]


@pytest.mark.parametrize(
    "silent", [RequestCode.GET_CONSUMER_LIST_BY_GROUP, RequestCode.GET_MAX_OFFSET], ids=["members", "end"]
)
def test_a_start_waits_ten_seconds_at_most_for_a_broker_that_does_not_answer(silent):
    async def scenario():
        async with FakeCluster() as cluster:
            cluster.create_topic("T", queues=1)
            cluster.fault(code=silent, times=None, answer=Reaction.SWALLOW)
            began = asyncio.get_running_loop().time()
            async with push(cluster, quiet, request_timeout=60.0):
                assert asyncio.get_running_loop().time() - began == pytest.approx(10.0, abs=1.0)

    run_skipping(scenario)


def test_a_listener_may_close_its_consumer_before_the_start_has_returned():
    async def scenario():
        async with FakeCluster(("broker-a", "broker-b")) as cluster:
            cluster.create_topic("T", queues=1)
            cluster.store("T", b"early", queue=QUEUE)
            cluster.fault(code=RequestCode.GET_MAX_OFFSET, broker="broker-b", answer=Reaction.SWALLOW)

            async def close(messages, context) -> None:
                await consumer.close()

            consumer = push(cluster, close, request_timeout=60.0)
            began = asyncio.get_running_loop().time()
            await consumer.start()
            assert asyncio.get_running_loop().time() - began < 5
            await consumer.close()
            assert cluster.members("g") == []

    run_skipping(scenario)
