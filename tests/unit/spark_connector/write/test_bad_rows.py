"""Rows that cannot be sent: found, skipped or diverted, on the cluster in this process."""

import logging

import pyarrow as pa
import pytest

from rmqtools.arrow.schema import PROPERTIES as MAP
from rmqtools.errors import MessageRejectedError
from rmqtools.testing import FakeCluster
from spark_connector.options.option_table import parse_options
from spark_connector.options.write_settings import write_options
from spark_connector.worker import clients
from spark_connector.write.bad_rows import REASON, TOPIC
from spark_connector.write.write_task import TaskPlace, write_rows

PLACE = TaskPlace("q", 0, 3, 0)


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        for topic in ("orders", "bad"):
            cluster.create_topic(topic, queues=1)
        yield cluster
        clients._CACHE.close_all()


def rows(*bodies, **columns):
    return pa.record_batch({"body": pa.array(bodies, pa.binary()), **columns})


def write(cluster, batch, **given):
    options = write_options(parse_options({"nameServer": cluster.name_server, "topic": "orders", **given}))
    return write_rows(options, [batch], PLACE)


def bodies(cluster, topic):
    return [message.body for message in cluster.messages(topic)]


def test_by_default_a_bad_row_fails_the_write_and_nothing_is_sent(cluster):
    with pytest.raises(MessageRejectedError, match="row 1: body is null"):
        write(cluster, rows(b"a", None, b"c"))

    assert bodies(cluster, "orders") == []


def test_bad_rows_are_skipped_counted_and_the_first_ten_logged(cluster, caplog):
    with caplog.at_level(logging.WARNING):
        report = write(cluster, rows(b"a", *[b""] * 12, b"z"), onBadRow="skip")

    assert (report.bad_rows, report.rows.acked) == (12, 2)
    assert sorted(bodies(cluster, "orders")) == [b"a", b"z"]
    assert caplog.text.count("body is empty") == 10
    assert "row 1: body is empty" in caplog.text


def test_a_bad_row_is_diverted_with_its_reason_and_its_parts(cluster):
    properties = pa.array([[("a", "1")], [("a", "1"), ("MSG_REGION", "x")], []], MAP)
    batch = rows(b"first", b"second", None, properties=properties, keys=pa.array(["k", "k", "k3"]))

    report = write(cluster, batch, onBadRow="topic:bad")

    second, third = cluster.messages("bad")
    assert (report.bad_rows, bodies(cluster, "orders")) == (2, [b"first"])
    assert (second.body, second.keys, second.properties.get("a")) == (b"second", None, None)
    assert second.properties[REASON].startswith("row 1: property 'MSG_REGION' is reserved")
    assert (third.body, third.keys) == (b"-", "k3")
    assert third.properties[REASON].startswith("row 2: body is null")


def test_every_row_of_a_topic_that_cannot_be_is_diverted_with_the_topics_name(cluster):
    batch = rows(b"1", b"2", b"3", topic=pa.array(["no topic", "orders", "no topic"]))
    options = write_options(parse_options({"nameServer": cluster.name_server, "onBadRow": "topic:bad"}))

    write_rows(options, [batch], PLACE)

    found = cluster.messages("bad")
    assert [message.body for message in found] == [b"1", b"3"]
    assert {message.properties[TOPIC] for message in found} == {"no topic"}
    assert bodies(cluster, "orders") == [b"2"]


def test_texts_that_are_no_utf_8_and_too_large_bodies_are_diverted(cluster):
    tags = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"b"]).buffers())
    batch = rows(b"a", b"x" * 5_000_000, tags=tags)

    write(cluster, batch, onBadRow="topic:bad")

    assert [len(body) for body in bodies(cluster, "bad")] == [1, 1024 * 1024]
    assert bodies(cluster, "orders") == []


def test_diverted_rows_keep_their_stamps(cluster):
    write(cluster, rows(None, b"b"), onBadRow="topic:bad", stamp="true", stampId="run-7")

    (found,) = cluster.messages("bad")
    assert found.properties["SPARK_STAMP"] == "run-7/q/0/3/0"


def test_rows_that_are_bad_for_another_reason_than_their_content_fail_the_write(cluster):
    names = {"brokerName": pa.array(["broker-a"]), "queueId": pa.array([7], pa.int32())}

    with pytest.raises(MessageRejectedError, match="is not among the 1 queues"):
        write(cluster, rows(b"a", **names), onBadRow="skip")
