"""The official Java consumer reads what each mode of our producer wrote."""

from typing import Any

import pytest

from rmqtools import Admin, Message, Producer, ProducerConfig
from rmqtools.clock import SYSTEM_CLOCK
from tests.support.reading import await_readable

pytestmark = pytest.mark.docker


@pytest.fixture
def config(docker_cluster):
    return ProducerConfig(name_server=docker_cluster.name_server, group="modes")


@pytest.fixture
def read_by_java(docker_cluster, java_peer):
    """Dump a topic, again until it holds ``count`` messages."""

    def read(topic: str, count: int, *, timeout: float = 60) -> list[dict[str, Any]]:
        deadline = SYSTEM_CLOCK.monotonic() + timeout
        while len(rows := java_peer.dump(docker_cluster.name_server, topic)) < count:
            assert SYSTEM_CLOCK.monotonic() < deadline, f"{len(rows)} of {count} after {timeout} s"
        return rows

    return read


def test_orderly_sends_keep_the_order_of_each_key(config, new_topic, read_by_java):
    topic = new_topic()
    with Producer(config) as producer, Admin(config) as admin:
        results = [
            producer.send_orderly(Message(topic, b"%d" % number, sharding_key=f"key-{number % 5}"))
            for number in range(100)
        ]
        await_readable(admin, results)

    by_key: dict[str, list[int]] = {}
    for row in read_by_java(topic, 100):
        by_key.setdefault(row["properties"]["__SHARDINGKEY"], []).append(int(bytes.fromhex(row["body"])))
    assert by_key == {f"key-{place}": list(range(place, 100, 5)) for place in range(5)}


def test_a_batch_reads_back_message_by_message(config, new_topic, read_by_java):
    topic = new_topic()
    with Producer(config) as producer, Admin(config) as admin:
        results = producer.send_batch(
            [Message(topic, b"%d" % n, tags="t", keys=[f"k{n}"], properties={"n": str(n)}) for n in range(40)]
        )
        await_readable(admin, results)

    rows = read_by_java(topic, 40)
    assert [(bytes.fromhex(r["body"]), r["tags"], r["keys"], r["properties"]["n"]) for r in rows] == [
        (b"%d" % n, "t", f"k{n}", str(n)) for n in range(40)
    ]
    assert [row["msgId"] for row in rows] == [result.msg_id for result in results]


def test_a_one_way_message_and_many_arrive(config, new_topic, read_by_java):
    topic = new_topic()
    with Producer(config) as producer, Admin(config) as admin:
        producer.send_oneway(Message(topic, b"one way"))
        await_readable(admin, producer.send_many([Message(topic, b"%d" % n) for n in range(500)]))

    bodies = {bytes.fromhex(row["body"]) for row in read_by_java(topic, 501)}
    assert bodies == {b"one way"} | {b"%d" % n for n in range(500)}


@pytest.mark.slow  # timer messages are read by Java
def test_a_delayed_message_is_delivered_at_its_level(config, new_topic, read_by_java):
    topic = new_topic(queues=1)
    with Producer(config) as producer:
        producer.send(Message(topic, b"later", delay_level=2))

    (row,) = read_by_java(topic, 1)
    assert (row["storeTimestamp"] - row["bornTimestamp"]) / 1000 == pytest.approx(5, abs=1)


@pytest.mark.slow  # test_producer_modes.py has it without Java
def test_a_timer_message_is_delivered_and_a_recalled_one_is_not(
    config, docker_cluster, new_topic, read_by_java
):
    topic = new_topic(queues=1)
    with Producer(config) as producer, Admin(config) as admin:
        on_wheel = next(q for q in admin.fetch_publish_queues(topic) if q.broker_name == "broker-c")
        recalled = producer.send(Message(topic, b"never", delay=3.0), queue=on_wheel)
        producer.send(Message(topic, b"later", delay=5.0), queue=on_wheel)
        assert producer.recall(topic, recalled.recall_handle or "") == recalled.msg_id

    (row,) = read_by_java(topic, 1)
    assert bytes.fromhex(row["body"]) == b"later"
    assert (row["storeTimestamp"] - row["bornTimestamp"]) / 1000 == pytest.approx(5, abs=1.5)
