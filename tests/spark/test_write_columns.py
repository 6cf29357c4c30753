"""What the columns of a written row do: queues, keys of order, delays; and SQL's INSERT INTO."""

import json
from collections import defaultdict
from datetime import UTC, datetime
from unittest.mock import ANY

import pytest

from rmqtools.select import SelectMessageQueueByHash
from tests.spark.streams import await_true
from tests.spark.test_errors import error_of

pytestmark = [pytest.mark.spark, pytest.mark.broker]


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


@pytest.mark.parametrize(
    ("options", "brokers", "queues"),
    [
        pytest.param({"queueSelector": "random"}, {"broker-a", "broker-b"}, 8, id="random"),
        pytest.param({"queueSelector": "HASH"}, None, 1, id="hash-of-one-key"),
        pytest.param(
            {"queueSelector": "machine-room", "queueSelector.room": "broker"}, None, 1, id="machine-room"
        ),
        pytest.param(
            {"queueSelector": "tests.spark.plug_ins:SecondBroker", "queueSelector.name": "broker-b"},
            {"broker-b"},
            1,
            id="own",
        ),
    ],
)
def test_selectors_choose_the_queues(make_topic, write, read, options, brokers, queues):
    topic = make_topic()

    write([("x" * 500, "k")] * 3000, "body string, keys string", topic=topic, batchBytes=10_000, **options)

    found = read(topic=topic).groupBy("brokerName", "queueId").count().collect()
    assert sum(row["count"] for row in found) == 3000
    assert len(found) == queues
    assert brokers is None or {row.brokerName for row in found} == brokers


def test_delayed_rows_come_later(make_topic, write, read):
    topic = make_topic()

    write([("at once", None), ("level", 2)], "body string, delayLevel int", topic=topic)

    await_true(lambda: read(topic=topic).count() == 2, "the delayed row", timeout=60)
    waited = {
        bytes(row.body): (row.storeTimestamp - row.bornTimestamp).total_seconds()
        for row in read(topic=topic).collect()
    }
    assert waited[b"level"] >= 4.5  # level 2: 5 seconds
    assert waited[b"at once"] < waited[b"level"]


def test_a_time_of_delivery_reaches_the_broker_which_says_that_its_timer_is_off(make_topic, write):
    rows = [("time", datetime(2100, 1, 1, tzinfo=UTC))]

    text = error_of(lambda: write(rows, "body string, deliverTimestamp timestamp", topic=make_topic()))

    assert "timerWheelEnable is false" in text


def test_rows_are_inserted_by_sql(make_topic, read, spark, local_cluster):
    topic = make_topic()
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW topic_view USING rocketmq "
        f"OPTIONS (nameServer '{local_cluster.name_server}', topic '{topic}')"
    )
    spark.createDataFrame([("one", "t"), ("two", None)], "text string, tag string").createOrReplaceTempView(
        "made"
    )

    spark.sql("INSERT INTO topic_view (body, tags) SELECT CAST(text AS binary), tag FROM made")

    assert {(bytes(row.body), row.tags) for row in read(topic=topic).collect()} == {
        (b"one", "t"),
        (b"two", None),
    }


def test_offsets_of_a_write_fit_into_options_of_a_read(make_topic, write, read):
    topic = make_topic(queues=1)
    write([("a", "broker-a", 0)], "body string, brokerName string, queueId int", topic=topic)
    bounds = json.dumps({topic: {"broker-a": {"0": 1}, "broker-b": {"0": 0}}})
    write([("b", "broker-a", 0)], "body string, brokerName string, queueId int", topic=topic)

    assert texts_by_queue(read(topic=topic, startingOffsets=bounds)) == {("broker-a", 0): ["b"]}
