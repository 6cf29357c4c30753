"""Tasks and limits of micro-batches, and the lag of a query."""

import json

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

import spark_connector
from spark_connector.read.stream_reader import RocketMQStreamReader
from tests.spark.streams import await_true, counts, fill, next_offsets
from tests.support.spark_options import stream_of


@pytest.fixture
def make_reader(local_cluster):
    server = {"nameServer": local_cluster.name_server, "startingOffsets": "earliest"}
    return lambda **options: RocketMQStreamReader(stream_of(**server, **options))


@pytest.fixture
def filled(make_topic, producer, admin):
    """A topic with 60 messages in one queue and 3 in the other."""
    topic = make_topic(queues=1)
    fill(producer, admin, dict(zip(admin.fetch_subscribe_queues(topic), (60, 3), strict=True)))
    return topic


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        pytest.param({}, 1, id="small-ranges-share-a-task"),
        pytest.param({"minPartitions": "2"}, 2, id="one-per-queue"),
        pytest.param({"minPartitions": "4"}, 4, id="minPartitions"),
        pytest.param({"maxRecordsPerPartition": "20"}, 4, id="maxRecordsPerPartition"),
        pytest.param({"readers": "1"}, 1, id="one-reader"),
        pytest.param({"readers": "3", "allocator": "AVG_BY_CIRCLE"}, 2, id="a-reader-without-a-queue"),
    ],
)
def test_a_micro_batch_is_planned_as_a_batch_is_but_for_small_ranges(make_reader, filled, options, tasks):
    reader = make_reader(topic=filled, **options)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())

    planned = reader.partitions(start, end)

    assert len(planned) == tasks
    assert sum(batch.num_rows for partition in planned for batch in reader.read(partition)) == 63
    assert reader.partitions(end, end) == []


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        pytest.param({}, ReadAllAvailable(), id="none"),
        pytest.param({"maxOffsetsPerTrigger": "7", "minOffsetsPerTrigger": "3"}, ReadMaxRows(7), id="max"),
        pytest.param({"minOffsetsPerTrigger": "3"}, ReadMinRows(3), id="min"),
        pytest.param({"maxBytesPerTrigger": "9"}, ReadMaxBytes(9), id="bytes"),
    ],
)
def test_spark_is_told_whether_there_are_limits(make_reader, options, limit):
    assert make_reader(topic="T", **options).getDefaultReadLimit() == limit


def test_lag_is_seen_from_outside(spark, stream, admin, filled, tmp_path):
    history = spark_connector.LagHistory()
    spark.streams.addListener(history)
    queues = admin.fetch_subscribe_queues(filled)
    query = stream(topic=filled, startingOffsets="earliest", maxOffsetsPerTrigger=40).run()
    first, last = query.recentProgress[0], query.recentProgress[-1]
    await_true(lambda: len(history.points) >= len(counts(query)), "the listener heard of all batches")
    spark.streams.removeListener(history)

    assert counts(query) == [40, 23]
    assert spark_connector.lag(query) == dict.fromkeys(queues, 0)
    assert sum(history.points[0].lag.values()) == 23
    assert sum(history.points[0].rates.values()) == pytest.approx(
        40 / (first.durationMs["triggerExecution"] / 1000)
    )
    reported = [json.loads(text) for text in (first.sources[0].endOffset, last.sources[0].latestOffset)]
    assert [sum(next_offsets(offsets, queues)) for offsets in reported] == [40, 63]
    history.plot(tmp_path / "lag.svg")
