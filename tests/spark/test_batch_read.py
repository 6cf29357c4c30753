"""Ranges, partitions, and Spark's own operators over them."""

import json

import pytest


@pytest.fixture(scope="module")
def filled(fill_new):
    """A topic with 300 messages in each of 4 queues; bodies are their numbers."""
    return fill_new(300, queues=2, of=lambda number: {"tags": f"t{number % 3}"})


def offsets_json(admin, topic, offset_of):
    tree: dict[str, dict[str, int]] = {}
    for queue in admin.fetch_subscribe_queues(topic):
        tree.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offset_of(queue)
    return json.dumps({topic: tree})


def test_offsets_in_json_bound_every_queue(filled, read, admin):
    starting = offsets_json(admin, filled, lambda queue: 10 + queue.queue_id)
    ending = offsets_json(admin, filled, lambda queue: 20 + queue.queue_id)

    rows = read(topic=filled, startingOffsets=starting, endingOffsets=ending).collect()

    assert sorted((row.brokerName, row.queueId, row.queueOffset, int(bytes(row.body))) for row in rows) == [
        (broker, queue_id, offset, offset)
        for broker in ("broker-a", "broker-b")
        for queue_id in (0, 1)
        for offset in range(10 + queue_id, 20 + queue_id)
    ]


def test_one_partition_per_queue_and_more_on_request(filled, read):
    assert read(topic=filled).rdd.getNumPartitions() == 4
    assert read(topic=filled, minPartitions=10).rdd.getNumPartitions() >= 8
    assert read(topic=filled, maxRecordsPerPartition=100).rdd.getNumPartitions() == 12


def test_filters_count_right_also_on_one_frame(filled, read):
    frame = read(topic=filled)

    counts = [
        frame.filter(text).count() for text in ("queueId = 1", "tags = 't0'", "queueOffset < 10", "true")
    ]

    assert counts == [600, 400, 40, 1200]
    assert frame.filter("queueId = 0").union(frame.filter("queueId = 1")).count() == 1200


def test_a_limit_ends_early_and_the_next_read_is_whole(filled, read):
    frame = read(topic=filled)

    assert len(frame.limit(5).collect()) == 5
    assert len(frame.take(1)) == 1
    assert frame.count() == 1200


def test_batches_have_a_thousand_rows_whatever_a_pull_brings(make_topic, write, batch_reader):
    topic = make_topic(queues=1)
    write([(b"x" * 100,)] * 20_000, "body binary", topic=topic)
    reader = batch_reader(topic=topic)

    sizes = [[batch.num_rows for batch in reader.read(partition)] for partition in reader.partitions()]

    assert sum(map(sum, sizes)) == 20_000
    assert min(size for partition in sizes for size in partition[:-1]) >= 1000
