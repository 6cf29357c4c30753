"""What is written through Spark is read back equal, from a real broker."""

from collections import Counter

import pytest

from rmqtools import Admin, ClientConfig
from spark_connector.read.schema import READ_SCHEMA
from tests.spark.data import HARD_ROWS, WRITE_SCHEMA, message, messages_of
from tests.spark.streams import PLACE, stored_places


@pytest.mark.usefixtures("large_var_types")
def test_hard_rows_come_back_equal_with_large_types(make_topic, write, read):
    topic = make_topic()

    write(HARD_ROWS, WRITE_SCHEMA, topic=topic)

    assert messages_of(read(topic=topic).collect()) == Counter(message(*row) for row in HARD_ROWS)


def test_every_stored_offset_is_read_exactly_once(make_topic, write, read, admin):
    topic = make_topic()
    write([(b"%d" % row,) for row in range(5000)], "body binary", topic=topic)

    rows = read(topic=topic).select(*PLACE).collect()

    assert Counter(map(tuple, rows)) == stored_places(admin, topic)
    assert len(rows) == 5000


def test_the_schema_is_the_documented_one_and_the_values_fill_it(make_topic, write, read):
    topic = make_topic(queues=1)
    write([(b"body", "tag", "key", {"colour": "blue"})], WRITE_SCHEMA, topic=topic)

    frame = read(topic=topic)
    (row,) = frame.collect()

    assert frame.schema == READ_SCHEMA
    assert (row.topic, row.queueId, row.queueOffset) == (topic, 0, 0)
    assert row.brokerName in ("broker-a", "broker-b")
    assert row.properties["UNIQ_KEY"] == row.msgId
    assert row.properties["colour"] == "blue"
    assert row.bornHost.startswith("127.0.0.1:")
    assert abs((row.storeTimestamp - row.bornTimestamp).total_seconds()) < 60
    assert (row.reconsumeTimes, row.flag) == (0, 0)


def test_a_namespace_keeps_topics_of_one_name_apart(make_topic, write, read, local_cluster):
    topic = make_topic()
    with Admin(ClientConfig(name_server=local_cluster.name_server, namespace="tenant")) as admin:
        admin.create_topic(topic)
    write([("own",)], "body string", topic=topic, namespace="tenant")
    write([("common",)], "body string", topic=topic)

    inside, outside = read(topic=topic, namespace="tenant").collect(), read(topic=topic).collect()

    assert [(row.topic, bytes(row.body)) for row in inside] == [(topic, b"own")]
    assert [(row.topic, bytes(row.body)) for row in outside] == [(topic, b"common")]
