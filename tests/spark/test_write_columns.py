"""Columns of written rows: the queue, the delivery time; rows that cannot be messages."""

from collections import defaultdict
from datetime import UTC, datetime

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


BAD_ROWS = [(b"a",), (b"",), (b"b",), (None,)]


def test_bad_rows_are_skipped_or_diverted_with_the_reason(write, read_rows, make_topic):
    topic, bad = make_topic(), make_topic()

    write(BAD_ROWS, "body binary", topic=topic, onBadRow="skip")
    write(BAD_ROWS, "body binary", topic=topic, onBadRow=f"topic:{bad}")

    assert sorted(row.body for row in read_rows(topic=topic)) == [b"a", b"a", b"b", b"b"]
    reasons = [dict(row.properties)["SPARK_BAD_ROW"] for row in read_rows(topic=bad)]
    assert sorted(reason.split(":")[0] for reason in reasons) == ["row 1", "row 3"]
