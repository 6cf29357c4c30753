"""Topics that are deleted, shrunk or made anew: ``failOnDataLoss`` follows one rule for all reads."""

import pytest

from rmqtools import MessageQueue
from tests.spark.streams import await_true, error_of, fill, stored_places
from tests.support.patience import PATIENCE

LENIENT = {"failOnDataLoss": "false"}


@pytest.fixture
def two(make_topic, producer, admin):
    """Two topics of one queue with five messages each."""
    topics = make_topic(queues=1, broker_names=["broker-a"]), make_topic(queues=1, broker_names=["broker-a"])
    fill(producer, admin, {MessageQueue(topic, "broker-a", 0): 5 for topic in topics})
    return topics


def remade(admin, topic):
    """Delete a topic and make it again."""
    admin.delete_topic(topic)
    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])


def stop_in_first_batch(query):
    """Leave a checkpoint with a planned first batch that was never committed, as a killed driver does."""
    query.run()
    for file in (query.checkpoint / "commits").iterdir():
        file.unlink()


@pytest.mark.slow  # stream_losses has its unit tests
def test_a_deleted_topic_among_several_does_not_wedge_the_start_of_a_stream(stream, two, admin):
    gone, left = two
    admin.delete_topic(gone)
    options = {"topics": ",".join(two), "startingOffsets": "earliest"}

    assert f"topic '{gone}' has no route" in error_of(stream(**options).run)
    query = stream(**options, **LENIENT)
    query.run()

    assert query.places() == stored_places(admin, left)


def test_a_batch_planned_before_a_topic_was_deleted_reads_the_others(two, admin, batch_reader):
    gone, left = two
    strict, lenient = (batch_reader(topics=",".join(two), **more) for more in ({}, LENIENT))
    strict_parts, lenient_parts = strict.partitions(), lenient.partitions()
    admin.delete_topic(gone)

    rows = [row for part in lenient_parts for batch in lenient.read(part) for row in batch.to_pylist()]

    assert {row["topic"] for row in rows} == {left}
    assert len(rows) == 5
    with pytest.raises(Exception, match="set option 'failOnDataLoss' to false"):
        [batch for part in strict_parts for batch in strict.read(part)]


@pytest.mark.slow  # a topic made anew is recognised likewise
def test_another_topic_under_an_old_checkpoint_delivers_no_row(stream, two):
    first, second = two
    query = stream(topic=first, startingOffsets="earliest")
    query.run()
    changed = stream(topic=second, startingOffsets="earliest")
    running = []

    text = error_of(lambda: running.append(changed.start()) or running[0].awaitTermination(PATIENCE))

    assert f"{first}/broker-a/0 is no longer selected by the options" in text
    assert {row.topic for row in changed.rows()} == {first}


def test_a_batch_planned_before_a_topic_was_made_anew_delivers_no_row_of_the_new_one(
    stream, two, admin, producer
):
    topic = two[0]
    query = stream(topic=topic, startingOffsets="earliest")
    stop_in_first_batch(query)
    remade(admin, topic)
    fill(producer, admin, {MessageQueue(topic, "broker-a", 0): 8}, body=b"new")

    assert "was made anew" in error_of(query.run)
    files = query._spark.read.parquet(f"{query.folder}/rows/part-*.parquet")
    assert files.filter("body = X'6E6577'").count() == 0


@pytest.mark.slow  # stream_losses has its unit tests
def test_a_topic_deleted_while_a_query_runs_leaves_the_others_running(stream, two, admin, producer):
    gone, left = two
    query = stream(topics=",".join(two), startingOffsets="earliest", pollInterval="50ms", **LENIENT)
    running = query.start()
    await_true(lambda: query.is_written() and len(query.rows()) == 10, "all messages read")

    admin.delete_topic(gone)
    fill(producer, admin, {MessageQueue(left, "broker-a", 0): 3})
    await_true(lambda: len(query.rows()) == 13, "the others' messages read")

    running.stop()
