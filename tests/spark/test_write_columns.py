"""Columns of written rows: the queue, the sharding key, the delivery time."""

from collections import defaultdict
from datetime import UTC, datetime
from unittest.mock import ANY

from rmqtools.select import SelectMessageQueueByHash
from tests.spark.streams import error_of


def texts_by_queue(frame):
    """Bodies in the order of each queue."""
    found = defaultdict(list)
    for row in frame.orderBy("queueOffset").collect():
        found[row.brokerName, row.queueId].append(bytes(row.body).decode())
    return dict(found)


def test_rows_fill_all_queues_in_turn(make_topic, write, read):
    topic = make_topic()

    write([(b"x" * 1000,)] * 5000, "body binary", topic=topic, batchBytes=20_000)

    counts = [row["count"] for row in read(topic=topic).groupBy("brokerName", "queueId").count().collect()]
    assert sum(counts) == 5000
    assert len(counts) == 8
    assert max(counts) - min(counts) < 100


def test_explicit_queues_hold_their_rows_in_order(make_topic, write, read):
    topic = make_topic(queues=2)
    queues = [("broker-a", 0), ("broker-b", 1), ("broker-a", 1)]
    rows = [(str(number), *queues[number % 3]) for number in range(3000)]

    write(rows, "body string, brokerName string, queueId int", topic=topic, batchBytes=5000)

    expected = {queue: [str(n) for n in range(3000) if n % 3 == at] for at, queue in enumerate(queues)}
    assert texts_by_queue(read(topic=topic)) == expected


def test_rows_of_a_sharding_key_stay_in_order_on_the_queue_of_javas_hash(make_topic, write, read, producer):
    topic = make_topic()
    rows = [(str(number), f"key-{number % 20}") for number in range(4000)]

    write(rows, "body string, shardingKey string", topic=topic, batchBytes=5000)

    queues, select = producer.fetch_publish_queues(topic), SelectMessageQueueByHash()
    expected = defaultdict(list)
    for text, key in rows:
        queue = select(queues, ANY, key)
        expected[queue.broker_name, queue.queue_id].append(text)
    frame = read(topic=topic)
    assert texts_by_queue(frame) == expected
    assert {row.properties["__SHARDINGKEY"] for row in frame.collect()} == {f"key-{n}" for n in range(20)}


def test_a_selector_of_a_listed_module_chooses_the_queue(make_topic, write, read):
    topic = make_topic()
    selector = {"queueSelector": "tests.spark.plug_ins:SecondBroker", "queueSelector.name": "broker-b"}

    write([("x" * 500, "k")] * 3000, "body string, keys string", topic=topic, batchBytes=10_000, **selector)

    found = read(topic=topic).groupBy("brokerName", "queueId").count().collect()
    assert [(row.brokerName, row["count"]) for row in found] == [("broker-b", 3000)]


def test_a_time_of_delivery_reaches_the_broker_which_says_that_its_timer_is_off(make_topic, write):
    rows = [("time", datetime(2100, 1, 1, tzinfo=UTC))]

    text = error_of(lambda: write(rows, "body string, deliverTimestamp timestamp", topic=make_topic()))

    assert "timerWheelEnable is false" in text
