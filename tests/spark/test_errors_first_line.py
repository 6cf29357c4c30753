"""What the user did wrong is the first line of the exception that Spark shows."""

import json

import pytest

from tests.spark.streams import error_of
from tests.support.patience import PATIENCE


def top(text: str) -> str:
    """The first line with a word in it."""
    return next(line for line in text.splitlines() if line.strip())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"startingOffset": "earliest"}, "did you mean 'startingOffsets'?", id="load"),
        pytest.param(
            {"startingTimestamp": "2026-01-01"},
            "option 'startingTimestamp': 2026-01-01T00:00:00 has no",
            id="time",
        ),
    ],
)
def test_at_load(read, options, says):
    assert says in top(error_of(lambda: read(topic="T", **options)))


def test_at_the_first_action(read, make_topic):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    offsets = json.dumps({topic: {"broker-a": {"0": 7}}})

    assert "topic 'never-made' has no route" in top(error_of(lambda: read(topic="never-made").count()))
    assert "option 'startingOffsets': offset 7 of" in top(
        error_of(lambda: read(topic=topic, startingOffsets=offsets).count())
    )


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        pytest.param(
            "tag string",
            "column 'tag' cannot be written (did you mean 'tags'?): drop or rename it",
            id="column",
        ),
        pytest.param("body int", "column 'body' is int: cast it to binary or string", id="type"),
    ],
)
def test_at_save(write, schema, says):
    assert says in top(error_of(lambda: write([], schema, topic="T")))


def test_of_a_row_in_a_task(write, make_topic):
    text = error_of(lambda: write([("a",), (None,)], "body string", topic=make_topic()))

    assert "row 1: body is null" in "\n".join(text.splitlines()[:3])
    assert 'File "' not in text.partition("row 1: body is null")[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"topic": "never-made"}, "topic 'never-made' has no route"),
        ({"topic": "T", "maxTriggerDelay": "5s"}, "needs option 'minOffsetsPerTrigger': set it too"),
    ],
    ids=["topic", "options"],
)
def test_of_a_stream(stream, options, says):
    assert says in top(error_of(stream(**options).run))


def test_of_a_stream_that_is_written(spark, local_cluster, tmp_path):
    rows = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS boddy")
    writer = rows.writeStream.format("rocketmq").options(nameServer=local_cluster.name_server, topic="T")
    query = writer.option("checkpointLocation", str(tmp_path)).start

    text = error_of(lambda: query().awaitTermination(PATIENCE))

    assert "column 'boddy' cannot be written (did you mean 'body'?)" in top(text)
