"""How large micro-batches are, in real queries."""

import json
import random

import pytest

from tests.spark.streams import await_true, counts, fill, next_offsets, stored_places

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.fixture
def one_queue(make_topic, admin):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    return admin.fetch_subscribe_queues(topic)[0]


def test_available_now_takes_limited_batches_in_proportion_and_starves_nobody(
    stream, make_topic, producer, admin
):
    topic = make_topic(queues=1)
    queues = admin.fetch_subscribe_queues(topic)
    fill(producer, admin, {queues[0]: 78, queues[1]: 2})
    query = stream(topic=topic, startingOffsets="earliest", maxOffsetsPerTrigger=30)

    ended = query.run()

    assert counts(ended) == [30, 30, 20]
    assert [next_offsets(planned, queues) for planned in query.planned()] == [[29, 1], [58, 2], [78, 2]]
    assert query.places() == stored_places(admin, topic)


def test_bytes_are_limited_by_the_sizes_that_are_seen(stream, producer, admin, one_queue):
    fill(producer, admin, {one_queue: 40}, body=random.Random(1).randbytes(10_000))
    query = stream(topic=one_queue.topic, startingOffsets="earliest", maxBytesPerTrigger=150_000)

    ended = query.run()

    assert sum(counts(ended)) == 40
    assert 10 <= counts(ended)[0] == max(counts(ended)) <= 15  # a stored message has a header too


def test_a_small_batch_waits_for_more(spark, stream, producer, admin, one_queue):
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "100")
    query = stream(topic=one_queue.topic, minOffsetsPerTrigger=10, maxTriggerDelay="1h", pollInterval="10ms")
    running = query.start()

    fill(producer, admin, {one_queue: 4})
    await_true(lambda: seen(running, one_queue) == 4, "brokers asked")
    fill(producer, admin, {one_queue: 6})
    await_true(lambda: sum(counts(running)), "a batch")
    running.stop()
    spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")

    assert counts(running) == [10]


def test_a_small_batch_waits_no_longer_than_it_may(stream, producer, admin, one_queue):
    options = {"minOffsetsPerTrigger": 10, "maxTriggerDelay": "1s", "pollInterval": "10ms"}
    running = stream(topic=one_queue.topic, **options).start()

    fill(producer, admin, {one_queue: 4})

    await_true(lambda: sum(counts(running)) == 4, "all messages read")


def seen(query, queue):
    """The latest offset that the query reports."""
    latest = json.loads(query.lastProgress.sources[0].latestOffset)
    return next_offsets(latest, [queue])[0]
