"""Rows that cannot be messages, by the option ``onBadRow``, in batches and streams."""

import pytest

from rmqtools import Message
from tests.spark.test_errors import error_of
from tests.support.patience import PATIENCE, PATIENT_WRITE

pytestmark = [pytest.mark.spark, pytest.mark.broker]

ROWS = [(b"a",), (b"",), (b"b",), (None,)]


def bodies(rows):
    return sorted(bytes(row.body) for row in rows)


def test_a_bad_row_fails_the_write_with_its_number_and_a_remedy(write, make_topic):
    text = error_of(lambda: write(ROWS, "body binary", topic=make_topic()))

    assert "row 1: body is empty" in text


def test_bad_rows_are_skipped_or_diverted_with_the_reason(write, read_rows, make_topic):
    topic, bad = make_topic(), make_topic()

    write(ROWS, "body binary", topic=topic, onBadRow="skip")
    write(ROWS, "body binary", topic=topic, onBadRow=f"topic:{bad}")

    assert bodies(read_rows(topic=topic)) == [b"a", b"a", b"b", b"b"]
    reasons = [dict(row.properties)["SPARK_BAD_ROW"] for row in read_rows(topic=bad)]
    assert sorted(reason.split(":")[0] for reason in reasons) == ["row 1", "row 3"]


@pytest.mark.slow  # a batch diverts by the same code
def test_a_stream_diverts_its_bad_rows_and_goes_on(
    spark, local_cluster, stream, producer, admin, read_rows, make_topic, tmp_path
):
    source, target, bad = make_topic(queues=1), make_topic(), make_topic()
    sent = [producer.send(Message(source, body)) for body in (b"good", b"bad", b"good")]
    admin.await_readable({result.queue: result.queue_offset + 1 for result in sent}, timeout=PATIENCE)
    rows = stream(topic=source, startingOffsets="earliest").load()
    emptied = rows.selectExpr("CASE WHEN body = X'626164' THEN X'' ELSE body END AS body")

    writer = emptied.writeStream.format("rocketmq").option("nameServer", local_cluster.name_server)
    query = (
        writer.options(
            **PATIENT_WRITE, topic=target, onBadRow=f"topic:{bad}", checkpointLocation=str(tmp_path / "sink")
        )
        .trigger(availableNow=True)
        .start()
    )

    assert query.awaitTermination(PATIENCE)
    assert bodies(read_rows(topic=target)) == [b"good", b"good"]
    assert bodies(read_rows(topic=bad)) == [b"-"]
