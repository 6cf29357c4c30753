"""Fewer bytes: some columns only, and messages by key or id through the brokers' index."""

from types import SimpleNamespace

import pytest
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from rmqtools import Message
from rmqtools.clock import SYSTEM_CLOCK
from tests.spark.streams import await_true, error_of
from tests.support.reading import await_readable

BODY = b"x" * 1024


@pytest.fixture
def filled(admin, producer, make_topic):
    """``filled(3, keys=["k"])``: a topic with so many messages more that can be read; returns its name."""
    topic = make_topic(queues=1)

    def send(count, **fields):
        results = [producer.send(Message(topic, BODY, **fields)) for _ in range(count)]
        await_readable(admin, results)
        return SimpleNamespace(topic=topic, results=results)

    return send


def await_indexed(admin, sent):
    """Brokers index messages a moment after they are acknowledged."""
    ids = {result.queue.broker_name: result.msg_id for result in sent.results}
    await_true(
        lambda: all(admin.query_messages(sent.topic, id_, unique=True) for id_ in ids.values()), "indexed"
    )


def test_only_the_named_columns_are_read_in_their_order(read, filled):
    topic = filled(3, tags="a").topic

    frame = read(topic=topic, columns="queueOffset,tags")

    assert frame.columns == ["queueOffset", "tags"]
    assert {row.tags for row in frame.collect()} == {"a"}


def test_a_given_schema_with_some_columns_reads_only_these(spark, local_cluster, filled):
    topic = filled(3).topic
    schema = StructType([StructField("body", BinaryType()), StructField("queueOffset", LongType())])
    given = spark.read.format("rocketmq").schema(schema)

    rows = given.options(nameServer=local_cluster.name_server, topic=topic).load().collect()

    assert [bytes(row.body) for row in rows] == [BODY] * 3
    assert rows[0].asDict().keys() == {"body", "queueOffset"}


def test_a_scan_of_offsets_moves_no_bodies(read_batches, filled):
    topic = filled(500).topic

    whole, offsets = read_batches(topic=topic), read_batches(topic=topic, columns="queueOffset", tags="*")

    assert sum(batch.get_total_buffer_size() for batch in whole) > 500 * len(BODY)
    assert sum(batch.get_total_buffer_size() for batch in offsets) <= 500 * 9


def test_messages_are_found_by_key_and_by_id_once_each(read, filled, admin):
    filled(2, keys=["other"])
    sent = filled(3, keys=["order-7", "customer-1"])
    await_indexed(admin, sent)
    ids = [result.msg_id for result in sent.results]

    frame = read(
        topic=sent.topic, messageKeys="order-7,customer-1,never", messageIds=ids[0], columns="msgId,keys"
    )

    assert sorted(row.msgId for row in frame.collect()) == sorted(ids)
    assert read(topic=sent.topic, messageIds=ids[1]).count() == 1


def test_more_messages_with_a_key_than_one_answer_has_are_found_by_time(read, filled, admin):
    begins: list[int] = []
    for _ in range(3):
        await_true(lambda: not begins or SYSTEM_CLOCK.now_ms() > begins[-1] + 1500, "another second")
        begins.append(SYSTEM_CLOCK.now_ms())
        sent = filled(60, keys=["k"])
    await_indexed(admin, sent)

    assert read(topic=sent.topic, messageKeys="k").count() == 180
    last = read(topic=sent.topic, messageKeys="k", startingTimestamp=begins[-1]).count()
    first = read(topic=sent.topic, messageKeys="k", endingTimestamp=begins[1]).count()
    assert (first, last) == (60, 60)


def test_a_key_with_more_messages_in_a_second_than_the_index_returns_is_an_error(
    read, producer, make_topic, admin
):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    results = producer.send_many([Message(topic, b"x", keys=["k"]) for _ in range(1000)])
    await_indexed(admin, SimpleNamespace(topic=topic, results=results))

    text = error_of(lambda: read(topic=topic, messageKeys="k").count())

    assert "option 'messageKeys': key 'k' of topic" in text
    assert "more than 64 messages with this key in the second of" in text
