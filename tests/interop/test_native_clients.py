"""The native Python clients and ours: one sends, the other consumes; members of both kinds in one group."""

import itertools
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from rmqtools import Admin, ClientConfig, Message, MessageQueue, Producer, ProducerConfig, PushConsumer
from rmqtools.allocate import AllocateAveragely, share
from rmqtools.cluster import LocalCluster
from rmqtools.compat.sharding import native_hash
from rmqtools.testing import FakeCluster
from tests.support.cluster_scene import wait_until
from tests.support.java_peer import JavaPeerError
from tests.support.listening import Heard, listening
from tests.support.native_client import NativeClient, NativeMember

pytestmark = pytest.mark.broker

COUNT = 40


@pytest.fixture(scope="module", params=["rocketmq-client-python", "rocketmq"])
def native(request: pytest.FixtureRequest) -> NativeClient:
    return NativeClient.installed(request.param)


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"  # not n...: a native consumer of such a group corrupts its heap


@pytest.fixture
def topic(make_topic) -> str:
    return make_topic(queues=8, broker_names=["broker-a"])  # a native client does not say which broker


@pytest.fixture
def consumed() -> Heard:
    """The messages that our consumer got."""
    return Heard()


@pytest.fixture
def ours(local_cluster, group, topic, consumed) -> Iterator[PushConsumer]:
    with listening(local_cluster.name_server, topic, consumed, group=group) as consumer:
        yield consumer


def check_consumed(consumed: Heard, sent: list[dict[str, Any]]) -> None:
    """Wait for all that was sent, and see that it came once and whole."""
    consumed.wait(COUNT)
    assert [row["status"] for row in sent] == [0] * COUNT
    seen = sorted((int(m.properties["number"]), m.body, m.keys, m.tags) for m in consumed.messages)
    assert seen == [(n, b"native-%d" % n, f"key-{n}", "native") for n in range(COUNT)]


@pytest.mark.usefixtures("ours")
def test_our_consumer_reads_what_a_native_producer_sends(native, local_cluster, topic, consumed):
    check_consumed(consumed, native.send(local_cluster.name_server, "producer-sync", topic, "sync", COUNT))


@pytest.mark.usefixtures("ours")
def test_our_consumer_reads_what_a_native_producer_sends_in_order(native, local_cluster, topic, consumed):
    check_consumed(
        consumed, native.send(local_cluster.name_server, "producer-orderly", topic, "orderly", COUNT)
    )

    by_queue: dict[int, list[int]] = defaultdict(list)
    for message in sorted(consumed.messages, key=lambda message: message.queue_offset):
        by_queue[message.queue_id].append(int(message.properties["number"]))
    keys = [{number % 4 for number in numbers} for numbers in by_queue.values()]
    assert sum(map(len, keys)) == 4, "a key is in two queues"
    assert all(numbers == sorted(numbers) for numbers in by_queue.values())


@pytest.mark.usefixtures("ours")
def test_our_consumer_reads_what_a_native_producer_commits(local_cluster, topic, consumed):
    """Of rocketmq-client-python only: rocketmq 0.4.4 has no transactions."""
    native = NativeClient.installed("rocketmq-client-python")

    sent = native.send(local_cluster.name_server, "producer-transaction", topic, "transaction", COUNT)
    check_consumed(consumed, sent)


def test_a_native_consumer_reads_what_our_producer_sends(native, local_cluster, make_topic):
    for _ in range(2):  # a native consumer may stand still for ever
        try:
            rows = consumed_by_a_new(native, local_cluster, make_topic(queues=4))
            break
        except JavaPeerError as error:
            first = error
    else:
        raise first

    seen = {(bytes.fromhex(row["body"]), row["keys"], row["tags"], row["number"]) for row in rows}
    assert seen == {(b"x" * 6000, "compressed", "large", "-1")} | {
        (b"ours-%d" % n, f"k{n}", "t", str(n)) for n in range(COUNT)
    }


def consumed_by_a_new(native: NativeClient, local_cluster: LocalCluster, topic: str) -> list[dict[str, Any]]:
    """Return the messages that a native consumer of a new group got: one large, many small, sent by us."""
    config = ProducerConfig(name_server=local_cluster.name_server, group="ours")
    with (
        NativeMember(native, local_cluster.name_server, f"group-{topic}", topic) as member,
        Producer(config) as producer,
    ):
        producer.send(
            Message(topic, b"x" * 6000, tags="large", keys=["compressed"], properties={"number": "-1"})
        )
        producer.send_many(
            [
                Message(topic, b"ours-%d" % n, tags="t", keys=[f"k{n}"], properties={"number": str(n)})
                for n in range(COUNT)
            ]
        )
        return member.await_messages(COUNT + 1)


def test_a_group_of_both_kinds_owns_each_queue_once(
    native, local_cluster, ours, topic, consumed, group, producer
):
    with (
        NativeMember(native, local_cluster.name_server, group, topic) as member,
        Admin(ClientConfig(name_server=local_cluster.name_server)) as admin,
    ):
        wait_until(lambda: len(admin.fetch_consumer_ids(group)) == 2)
        queues = admin.fetch_subscribe_queues(topic)
        client_ids = admin.fetch_consumer_ids(group)
        mine = share(AllocateAveragely(), group, ours.client_id, queues, client_ids)

        def held() -> list[MessageQueue]:
            return [queue for queue in ours.queues if queue.topic == topic]

        wait_until(lambda: held() == sorted(mine))
        numbers = itertools.count()

        def shared_for_good() -> bool:
            """A native member rebalances in its own time: send until it has all its queues."""
            for queue in queues:
                producer.send(Message(topic, b"%d" % next(numbers)), queue=queue)
            its_queues = {row["queueId"] for row in member.messages}
            return held() == sorted(mine) and len(its_queues) >= len(queues) - len(mine)

        wait_until(shared_for_good)
        first = next(numbers)
        for queue in queues * 10:
            producer.send(Message(topic, b"%d" % next(numbers)), queue=queue)
        last = next(numbers)

        def bodies(rows: Iterable[bytes]) -> list[int]:
            return [number for number in map(int, rows) if first < number < last]

        def by_it() -> list[int]:
            return bodies(bytes.fromhex(row["body"]) for row in member.messages)

        def by_us() -> list[int]:
            return bodies(message.body for message in consumed.messages)

        wait_until(lambda: len(by_it()) + len(by_us()) >= last - first - 1)

        assert sorted(by_it() + by_us()) == list(range(first + 1, last))
        assert {queues[(number - first - 1) % len(queues)] for number in by_us()} == set(mine)


def test_a_native_producer_chooses_the_queue_that_the_moved_one_does():
    """On the fake cluster, which needs no Java."""
    native = NativeClient.installed("rocketmq-client-python")
    with FakeCluster() as cluster:
        cluster.create_topic("orders", queues=7)
        native.send(cluster.name_server, "group-orderly", "orders", "orderly", 12)
        sent = cluster.messages("orders")

    keys = [message.properties["__SHARDINGKEY"] for message in sent]
    assert len(set(keys)) == 4
    assert [message.queue_id for message in sent] == [native_hash(key.encode()) % 7 for key in keys]
