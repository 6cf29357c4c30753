"""Members that end without closing, as by kill -9: what they had not committed comes again."""

import os
import threading

import pytest

from rmqtools import MessageQueue, PullConsumer, PushConsumer
from tests.support.cluster_scene import wait_until
from tests.support.forked import in_child
from tests.unit.engine.consumer.pull_scene import config, push_config

QUEUE = MessageQueue("T", "broker-a", 0)
COUNT = 6


@pytest.fixture
def cluster(fake_rocketmq):
    fake_rocketmq.create_topic("T", queues=1)
    for number in range(COUNT):
        fake_rocketmq.store("T", b"%d" % number)
    return fake_rocketmq


def pushing(cluster, listener, *, orderly):
    consumer = PushConsumer(push_config(cluster, orderly=orderly, consume_threads=1))
    consumer.subscribe("T", listener)
    return consumer


@pytest.mark.process
@pytest.mark.parametrize("orderly", [False, True], ids=["any-order", "orderly"])
def test_a_killed_push_consumer_leaves_what_it_had_not_committed_to_the_next(cluster, orderly):
    def killed() -> str:
        def die(messages, context):
            if messages[0].queue_offset == 3:
                os._exit(9)

        pushing(cluster, die, orderly=orderly).start()
        threading.Event().wait()
        return "never"

    assert in_child(killed) == ""
    wait_until(lambda: cluster.members("g") == [])
    assert (cluster.committed("g", QUEUE) or 0) <= 3
    if (owner := cluster.lock_owner("g", QUEUE)) is not None:
        cluster.advance(61)  # a broker drops the lock of a member that is gone
        assert orderly, owner

    heard: list[int] = []
    with pushing(
        cluster, lambda messages, _: heard.extend(m.queue_offset for m in messages), orderly=orderly
    ):
        wait_until(lambda: len(heard) >= COUNT - 3 and heard[-1] == COUNT - 1)

    assert heard == list(range(heard[0], COUNT))
    assert heard[0] <= 3


@pytest.mark.parametrize(("auto_commit", "committed"), [(True, 2), (False, None)])
def test_a_killed_pull_consumer_gets_its_last_poll_again_or_all_since_its_last_commit(
    cluster, auto_commit, committed
):
    def member() -> PullConsumer:
        consumer = PullConsumer(config(cluster, auto_commit=auto_commit, auto_commit_interval=1e-6))
        consumer.subscribe("T")
        return consumer

    def killed() -> str:
        consumer = member()
        consumer.start()
        consumer.poll(10, 2)
        consumer.poll(10, 2)
        if auto_commit:
            wait_until(lambda: consumer.committed(QUEUE) is not None)
        os._exit(9)

    assert in_child(killed) == ""
    wait_until(lambda: cluster.members("g") == [])

    assert cluster.committed("g", QUEUE) == committed
    with member() as again:
        assert again.poll(10, 1)[0].queue_offset == (committed or 0)
