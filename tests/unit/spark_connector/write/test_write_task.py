"""The place of a write task, from Spark's context, the stamps made of it, and what a task logs."""

import pyarrow as pa
import pytest

from rmqtools.arrow.schema import PROPERTIES as MAP
from rmqtools.errors import ConfigError, MessageRejectedError
from rmqtools.model.codes import RequestCode, ResponseCode
from spark_connector.write.write_task import (
    BAD_ROW_REASON,
    BAD_ROW_TOPIC,
    TaskPlace,
    place_of_task,
    write_rows,
)
from tests.support.spark_options import write_of


class Context:
    """The context of a running task."""

    def __init__(self, **properties: str) -> None:
        self.properties = {name.replace("_", "."): text for name, text in properties.items()}

    def getLocalProperty(self, name):
        return self.properties.get(name)

    def partitionId(self):
        return 3

    def attemptNumber(self):
        return 1


def options(**given):
    return write_of(**{"topic": "T", "stamp": "true", **given})


def test_a_write_outside_of_queries_has_the_id_made_for_it():
    assert place_of_task(Context(), "made") == TaskPlace("made", 0, 3, 1, is_made=True)
    assert place_of_task(None, "made") == TaskPlace("made", 0, 0, 0, is_made=True)


def test_a_write_inside_a_query_has_the_querys_id_and_batch():
    context = Context(sql_streaming_queryId="q", streaming_sql_batchId="7")

    assert place_of_task(context, "made") == TaskPlace("q", 7, 3, 1)


def test_a_write_by_spark_connect_with_stamps_asks_for_an_id():
    place = place_of_task(Context(spark_job_tags="x,SparkConnect_OperationTag_1"), "made")

    with pytest.raises(ConfigError, match="option 'stamp' needs option 'stampId' on Spark Connect"):
        place.stamper(options())
    stamper = place.stamper(options(stampId="run-7"))
    assert stamper is not None
    assert stamper.stamp_id == "run-7"
    assert place.stamper(options(stamp="false")) is None


STREAM = {"spark_sql_cbo_enabled": "false", "spark_sql_streaming_internal_stateStore_partitions": "2"}


@pytest.mark.parametrize(
    "settings", [STREAM, {"spark_sql_cbo_enabled": "false", "spark_sql_adaptive_enabled": "false"}]
)
@pytest.mark.parametrize("given", [{}, {"stamp": "false", "delivery": "exactlyOnce", "stampId": "x"}])
def test_a_write_of_a_stream_that_does_not_know_its_micro_batch_is_refused(settings, given):
    place = place_of_task(Context(**settings), "made")

    with pytest.raises(
        ConfigError, match=r"threads of foreachBatch do not inherit: .*inheritable_thread_target"
    ):
        write_rows(options(**given), [], place)


CONNECT = STREAM | {"spark_job_tags": "x,SparkConnect_OperationTag_1"}


@pytest.mark.parametrize("given", [{}, {"stamp": "false", "delivery": "exactlyOnce"}])
def test_foreach_batch_on_spark_connect_needs_the_number_of_the_micro_batch_in_its_id(given):
    place = place_of_task(Context(**CONNECT), "made")

    for wrong in ({}, {"stampId": "orders"}):
        with pytest.raises(ConfigError, match=r"on Spark Connect: put it at the end of option 'stampId'"):
            place.check(options(**given, **wrong))
    place.check(options(**given, stampId="orders-7"))


@pytest.mark.parametrize(
    "settings",
    [
        STREAM | {"sql_streaming_queryId": "q", "streaming_sql_batchId": "7"},
        {"spark_sql_cbo_enabled": "false"},
        {"spark_sql_cbo_enabled": "false", "spark_sql_adaptive_enabled": "true"},
        {"spark_sql_adaptive_enabled": "false"},
    ],
)
def test_a_write_that_knows_its_micro_batch_or_has_none_is_not_refused(settings):
    place_of_task(Context(**settings), "made").check(options())


@pytest.mark.parametrize(
    ("place", "given", "stamped"),
    [
        pytest.param(TaskPlace("made", 0, 1, 0, is_made=True), {}, ("made", None), id="batch"),
        pytest.param(
            TaskPlace("made", 0, 1, 0, is_made=True), {"stampId": "x"}, (None, "x"), id="batch-with-id"
        ),
        pytest.param(TaskPlace("q", 7, 1, 0), {}, ("q", None), id="query"),
        pytest.param(TaskPlace("q", 7, 1, 0), {"stampId": "x"}, ("q", "x"), id="query-with-id"),
    ],
)
def test_stamps_are_made_of_ids_that_come_again(place, given, stamped):
    stamper = place.stamper(options(**given))

    assert (stamper.query, stamper.stamp_id) == stamped


@pytest.mark.parametrize(("faults", "retried"), [(0, []), (1, [4])])
def test_a_task_logs_once_that_rows_needed_another_attempt(cluster, caplog, faults, retried):
    cluster.fault(code=RequestCode.SEND_BATCH_MESSAGE, times=faults, answer=ResponseCode.SYSTEM_BUSY)

    write(cluster, rows(b"a", b"b", b"c", b"d"))

    found = [record.retried for record in caplog.records if record.message.startswith("rows_retried ")]
    assert found == retried


PLACE = TaskPlace("q", 0, 3, 0)


@pytest.fixture
def cluster(cluster):
    cluster.create_topic("bad", queues=1)
    return cluster


def rows(*bodies, **columns):
    return pa.record_batch({"body": pa.array(bodies, pa.binary()), **columns})


def write(cluster, batch, **given):
    options = write_of(nameServer=cluster.name_server, **{"topic": "orders", **given})
    return write_rows(options, [batch], PLACE)


def bodies(cluster, topic):
    return [message.body for message in cluster.messages(topic)]


def test_by_default_a_bad_row_fails_the_write_and_nothing_is_sent(cluster):
    with pytest.raises(MessageRejectedError, match="row 1: body is null"):
        write(cluster, rows(b"a", None, b"c"))

    assert bodies(cluster, "orders") == []


def test_bad_rows_are_skipped_counted_and_the_first_ten_logged(cluster, caplog):
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
    assert second.properties[BAD_ROW_REASON].startswith("row 1: property 'MSG_REGION' is reserved")
    assert (third.body, third.keys) == (b"-", "k3")
    assert third.properties[BAD_ROW_REASON].startswith("row 2: body is null")


def test_every_row_of_a_topic_that_cannot_be_is_diverted_with_the_topics_name(cluster):
    batch = rows(b"1", b"2", b"3", topic=pa.array(["no topic", "orders", "no topic"]))

    write(cluster, batch, topic=None, onBadRow="topic:bad")

    found = cluster.messages("bad")
    assert [message.body for message in found] == [b"1", b"3"]
    assert {message.properties[BAD_ROW_TOPIC] for message in found} == {"no topic"}
    assert bodies(cluster, "orders") == [b"2"]


def test_a_topic_that_cannot_be_is_a_bad_row_also_where_missing_topics_are_refused(cluster):
    topics = [b"no topic", b"\xff", b"", b"orders"]
    names = pa.Array.from_buffers(pa.string(), 4, pa.array(topics, pa.binary()).buffers())
    batch = rows(b"1", b"2", b"3", b"4", topic=names)

    report = write(cluster, batch, topic=None, createTopic="false", onBadRow="skip")

    assert (report.bad_rows, bodies(cluster, "orders")) == (3, [b"4"])


def test_texts_that_are_no_utf_8_and_too_large_bodies_are_diverted(cluster):
    tags = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"b"]).buffers())
    batch = rows(b"a", b"x" * 5_000_000, tags=tags)

    write(cluster, batch, onBadRow="topic:bad")

    assert [len(body) for body in bodies(cluster, "bad")] == [1, 1024 * 1024]
    assert bodies(cluster, "orders") == []


def test_a_bad_row_is_diverted_with_its_parts_whatever_its_time_of_delivery_and_broker(cluster):
    beyond_the_year_9999 = pa.array([2**58], pa.timestamp("us", tz="UTC"))
    broker = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    places = {"brokerName": broker, "queueId": pa.array([0], pa.int32())}
    batch = rows(b"", keys=pa.array(["k"]), deliverTimestamp=beyond_the_year_9999, **places)

    report = write(cluster, batch, onBadRow="topic:bad")

    assert (report.bad_rows, [message.keys for message in cluster.messages("bad")]) == (1, ["k"])


def test_diverted_rows_keep_their_stamps(cluster):
    write(cluster, rows(None, b"b"), onBadRow="topic:bad", stamp="true", stampId="run-7")

    (found,) = cluster.messages("bad")
    assert found.properties["SPARK_STAMP"] == "run-7/q/0/3/0"


def test_rows_that_are_bad_for_another_reason_than_their_content_fail_the_write(cluster):
    names = {"brokerName": pa.array(["broker-a"]), "queueId": pa.array([7], pa.int32())}

    with pytest.raises(MessageRejectedError, match="is not among the 1 queue to send to"):
        write(cluster, rows(b"a", **names), onBadRow="skip")
