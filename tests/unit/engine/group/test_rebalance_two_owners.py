"""Two members that both hold a queue: messages arrive twice, unless the broker's lock decides."""

from collections import Counter
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest

from rmqtools import PushConsumer, PushConsumerConfig
from rmqtools.model.codes import RequestCode
from tests.support.cluster_scene import wait_until


@dataclass(frozen=True)
class TakesAll:
    """A member whose lists differ from the others': it computes that every queue is its own."""

    name: str = "AVG"

    def allocate(self, group, client_id, queues, client_ids):
        return list(queues)


def members(cluster, heard, may_end, *, orderly):
    def listen(messages, context):
        heard.update((message.queue_id, message.queue_offset) for message in messages)
        may_end.wait(20)

    for name in ("one", "two"):
        config = PushConsumerConfig(
            name_server=cluster.name_server,
            group="billing",
            instance_name=name,
            orderly=orderly,
            consume_from="CONSUME_FROM_FIRST_OFFSET",
        )
        member = PushConsumer(config, strategy=TakesAll())
        member.subscribe("T", listen)
        yield member


def locks_of_topic(cluster) -> int:
    asked = cluster.requests(RequestCode.LOCK_BATCH_MQ)
    return sum(b'"T"' in (request.body or b"") for request in asked)


@pytest.mark.process
@pytest.mark.parametrize(("orderly", "times"), [(False, 2), (True, 1)], ids=["any-order", "orderly"])
def test_a_queue_with_two_owners_is_consumed_twice_and_with_a_lock_once(fake_rocketmq, orderly, times):
    fake_rocketmq.create_topic("T", queues=1)
    fake_rocketmq.store("T", b"only")
    heard, may_end = Counter[Any](), Event()
    one, two = members(fake_rocketmq, heard, may_end, orderly=orderly)
    with one, two:
        wait_until(lambda: heard[0, 0] >= times and len(fake_rocketmq.members("billing")) == 2)
        if orderly:  # both have asked for the lock, and the refused one, which does not hold the queue, again
            wait_until(lambda: locks_of_topic(fake_rocketmq) >= 3)
        held = [sum(queue.topic == "T" for queue in member.queues) for member in (one, two)]
        may_end.set()

    assert sorted(held) == sorted([1, times - 1])
    assert heard == {(0, 0): times}
