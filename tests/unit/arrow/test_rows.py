"""Record batches to messages."""

import pyarrow as pa
import pytest

from rmqtools import Message
from rmqtools.arrow import WRITE_COLUMNS, batch_to_messages
from rmqtools.errors import MessageRejectedError

PROPERTIES = pa.map_(pa.string(), pa.string())


def batch(**columns):
    return pa.record_batch(columns)


def test_every_column_reaches_its_place():
    whole = batch(
        body=pa.array([b"a\x00b"]),
        topic=pa.array(["Orders"]),
        tags=pa.array(["new"]),
        keys=pa.array(["k1 k2"]),
        properties=pa.array([[("colour", "blue")]], PROPERTIES),
        shardingKey=pa.array(["s"]),
        queueId=pa.array([1], pa.int32()),
        brokerName=pa.array(["broker-a"]),
        delayLevel=pa.array([3], pa.int32()),
        deliverTimestamp=pa.array([1_000_999], pa.timestamp("us", tz="Europe/Berlin")),
    )

    assert set(whole.schema.names) == set(WRITE_COLUMNS)
    expected = Message(
        "Orders",
        b"a\x00b",
        "new",
        "k1 k2",
        {"colour": "blue"},
        sharding_key="s",
        delay_level=3,
        deliver_at_ms=1000,
    )
    assert batch_to_messages(whole) == [expected]


def test_a_map_whose_values_are_never_null_is_a_map_of_properties():
    never_null = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))
    columns = {"body": pa.array([b"x"]), "properties": pa.array([[("src", "bench")]], never_null)}

    (message,) = batch_to_messages(batch(**columns), topic="T")

    assert message.properties == {"src": "bench"}


def test_the_topic_given_wins_over_the_column():
    both = batch(body=pa.array([b"a"]), topic=pa.array(["column"]))

    assert [message.topic for message in batch_to_messages(both, topic="given")] == ["given"]


def test_a_time_after_the_year_9999_is_no_datetime_but_a_time():
    times = pa.array([300_000_000_000_000_000], pa.timestamp("us", tz="UTC"))

    (message,) = batch_to_messages(batch(body=pa.array([b"a"]), deliverTimestamp=times), topic="T")

    assert message.deliver_at_ms == 300_000_000_000_000


def refused(id, text, **columns):
    """Columns beside one body and topic, unless they give others or None."""
    given = {"body": pa.array([b"a"]), "topic": pa.array(["T"])} | columns
    return pytest.param({name: values for name, values in given.items() if values is not None}, text, id=id)


TWO = {"body": pa.array([b"a", b"b"]), "topic": pa.array(["T", "T"])}


def test_a_column_that_is_there_twice_is_refused():
    twice = pa.RecordBatch.from_arrays([pa.array([b"a"]), pa.array([b"b"])], names=["body", "body"])

    with pytest.raises(MessageRejectedError, match="column 'body' is there more than once"):
        batch_to_messages(twice, topic="T")


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        refused("unknown-column", "column 'tag'", tag=pa.array(["t"])),
        refused("type", "column 'body' is int64: cast it to binary or string", body=pa.array([1])),
        refused(
            "time-without-zone",
            "column 'deliverTimestamp' is timestamp",
            deliverTimestamp=pa.array([1], pa.timestamp("us")),
        ),
        refused("half-a-queue", "name a queue together: give both", queueId=pa.array([1], pa.int32())),
        refused("no-body-column", "column 'body'", body=None),
        refused("no-topic-column", "needs a topic", topic=None),
        refused("null-body", "row 11: body is null", **TWO | {"body": pa.array([b"a", None])}),
        refused("null-topic", "row 11: topic is null", **TWO | {"topic": pa.array(["T", None])}),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(columns, text):
    with pytest.raises(MessageRejectedError, match=text):
        batch_to_messages(pa.record_batch(columns), first_row=10)
