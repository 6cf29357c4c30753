"""A whole group of Java's members and ours on three masters: shares, joins, leaves, crashes."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest

from rmqtools import Message, MessageQueue, Producer, ProducerConfig
from rmqtools.allocate import share, strategy_of
from tests.support.cluster_scene import wait_until
from tests.support.java_consumer import JavaConsumer, PythonConsumer
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.docker

BROKERS = ("broker-a", "broker-b", "broker-c")
SETTLED_WITHIN = 45.0  # seconds after a change until every queue is owned once


@contextmanager
def sending(name_server: str, topic: str, count: int) -> Iterator[threading.Thread]:
    """Send numbered messages in the background, spread over a quarter of a minute."""

    def send() -> None:
        with Producer(ProducerConfig(name_server=name_server, send_timeout=10.0)) as producer:
            for start in range(0, count, count // 60):
                numbers = range(start, min(start + count // 60, count))
                producer.send_many([Message(topic, b"%d" % number) for number in numbers])
                threading.Event().wait(0.25)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    yield thread
    thread.join()


def await_shared(members: Iterable[JavaConsumer], queues: Sequence[MessageQueue], what: str) -> None:
    """Wait until each member reports just the share that its strategy gives it; print how long it took."""
    began = time.monotonic()
    living = list(members)
    strategy = strategy_of(living[0].option("--strategy"))
    client_ids = [member.client_id for member in living]
    shares = {one: set(share(strategy, "g", one, queues, client_ids)) for one in client_ids}
    assert Counter(itertools.chain.from_iterable(shares.values())) == Counter(queues)

    wait_until(
        lambda: {member.client_id: member.assigned for member in living} == shares, seconds=SETTLED_WITHIN
    )
    print(f"{what}: every queue owned once after {time.monotonic() - began:.1f} s")


@pytest.mark.parametrize(
    "count",
    [pytest.param(3_000, id="3000"), pytest.param(60_000, id="60000", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("strategy", ["AVG", pytest.param("CONSISTENT_HASH", marks=pytest.mark.slow)])
def test_java_members_and_ours_share_every_queue_once_through_joins_leaves_and_crashes(
    docker_cluster, new_topic, java_peer, group, strategy, count
):
    topic = new_topic(queues=8)
    queues = [MessageQueue(topic, broker, number) for broker in BROKERS for number in range(8)]
    server, options = docker_cluster.name_server, ("--strategy", strategy, "--print")
    java = [JavaConsumer(java_peer, server, group, topic, *options) for _ in range(3)]
    ours = [PythonConsumer(server, group, topic, *options) for _ in range(3)]

    with ExitStack() as stack, sending(server, topic, count):
        for member in (java[0], ours[0], java[1], ours[1]):
            stack.enter_context(member)
        await_shared([*java[:2], *ours[:2]], queues, f"{strategy}: two and two")
        stack.enter_context(ours[2])
        await_shared([*java[:2], *ours], queues, f"{strategy}: one of ours joins")
        java[0].stop()
        await_shared([java[1], *ours], queues, f"{strategy}: a Java member leaves")
        ours[0].stop()
        await_shared([java[1], *ours[1:]], queues, f"{strategy}: one of ours leaves")
        ours[1].kill()
        await_shared([java[1], ours[2]], queues, f"{strategy}: one of ours is killed")
        stack.enter_context(java[2])
        await_shared([*java[1:], ours[2]], queues, f"{strategy}: a Java member joins")
        java[1].kill()
        await_shared([java[2], ours[2]], queues, f"{strategy}: a Java member is killed")

        def consumed() -> set[int]:
            return {int(row["body"]) for member in (*java, *ours) for row in member.messages}

        wait_until(lambda: len(consumed()) == count, seconds=PATIENCE)

    assert consumed() == set(range(count))
