"""A recipe for your own test suite: only the pinned machine of four consumes.

pytest examples/staging_pinned/test_recipe.py                      # a cluster in the test's own process
pytest examples/staging_pinned/test_recipe.py --rocketmq=real      # a real one, started for the test

The fixtures ``rocketmq_cluster``, ``topic``, ``producer`` and ``pinned_group`` come with rmqtools[testing].
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from rmqtools import (
    ConsumeContext,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.cluster import LocalCluster
from rmqtools.testing import FakeCluster, PinnedGroup

IPS = ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
Members = dict[str, PushConsumer]


@pytest.fixture
def received() -> Counter[str]:
    """Return how many messages each machine has consumed."""
    return Counter()


@pytest.fixture
def members(
    rocketmq_cluster: LocalCluster | FakeCluster,
    topic: str,
    pinned_group: PinnedGroup,
    received: Counter[str],
) -> Iterator[Members]:
    """Four members in this process, each with the address of a machine of its own in its name."""
    with ExitStack() as stack:
        made: Members = {}
        for ip in IPS:
            config = PushConsumerConfig(
                name_server=rocketmq_cluster.name_server,
                group=pinned_group.name,
                client_ip=ip,
                pin_poll_interval=0.2,
                consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            )
            made[ip] = PushConsumer(config, strategy=pinned_group.strategy)
            made[ip].subscribe(topic, counting(received, ip))
            stack.enter_context(made[ip])
        yield made


def counting(received: Counter[str], ip: str) -> Callable[[Sequence[MessageExt], ConsumeContext], None]:
    """Make the listener of one machine; in your suite, the one of your program."""

    def listen(messages: Sequence[MessageExt], context: ConsumeContext) -> None:
        received[ip] += len(messages)

    return listen


def owned(members: Members, topic: str) -> list[int]:
    """Return how many queues of the topic each member owns."""
    return [sum(queue.topic == topic for queue in member.queues) for member in members.values()]


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Return whether a condition holds within some time: members follow pins by themselves."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_only_the_pinned_machine_consumes_until_the_pins_are_removed(
    topic: str, producer: Producer, pinned_group: PinnedGroup, members: Members, received: Counter[str]
) -> None:
    """Pin, send, compare, unpin."""
    pinned_group.pin("10.0.0.2")
    assert eventually(lambda: sum(owned(members, topic)) == owned(members, topic)[1] > 0)

    for number in range(40):
        producer.send(Message(topic, f"order {number}".encode()))
    assert eventually(lambda: received.total() == 40)
    assert dict(received) == {"10.0.0.2": 40}

    pinned_group.clear()
    assert eventually(lambda: all(owned(members, topic)))
