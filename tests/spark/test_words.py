"""Options that mean what RocketMQ, Spark and ISO 8601 mean by them; the ends of streams."""

import json

import pytest

import spark_connector
from rmqtools import MessageQueue
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import TopicNotFoundError
from tests.spark.streams import await_true, error_of, fill, stored_places
from tests.support.patience import PATIENCE


@pytest.fixture
def one(make_topic):
    """A topic of two queues, one of them with five messages."""
    topic = make_topic(queues=2, broker_names=["broker-a"])
    return topic, MessageQueue(topic, "broker-a", 0)


def test_a_starting_time_takes_queues_that_never_held_a_message_as_they_are(one, producer, admin, read_rows):
    topic, queue = one
    fill(producer, admin, {queue: 5})

    assert len(read_rows(topic=topic, startingTimestamp=0)) == 5


def test_a_stream_of_available_now_ends_at_its_ending_offsets(one, producer, admin, stream):
    topic, queue = one
    fill(producer, admin, {queue: 9})
    ending = json.dumps({topic: {"broker-a": {"0": 7, "1": 3}}})
    query = stream(topic=topic, startingOffsets="earliest", endingOffsets=ending, maxOffsetsPerTrigger=4)

    query.run()
    query.run()

    assert sum(query.places().values()) == 7


@pytest.mark.slow  # times are looked up as in a batch
def test_a_stream_ends_at_its_ending_time(one, producer, admin, stream):
    topic, queue = one
    fill(producer, admin, {queue: 5})
    ending = SYSTEM_CLOCK.now_ms() + 20
    await_true(lambda: SYSTEM_CLOCK.now_ms() > ending, "the time")
    fill(producer, admin, {queue: 3, MessageQueue(topic, "broker-a", 1): 2})
    query = stream(topic=topic, startingOffsets="earliest", endingTimestamp=ending, pollInterval="50ms")
    running = query.start()

    assert spark_connector.stop_at_end(running, timeout=PATIENCE)

    assert sum(query.places().values()) == 5


def test_a_stream_waits_for_a_topic_that_is_not_there_yet(stream, admin, producer):
    topic = f"later-{SYSTEM_CLOCK.now_ms()}"
    assert f"topic '{topic}' has no route" in error_of(stream(topic=topic).run)
    query = stream(topic=topic, mustExist="false", pollInterval="50ms")
    running = query.start()

    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
    fill(producer, admin, dict.fromkeys(admin.fetch_subscribe_queues(topic), 3))

    await_true(lambda: query.is_written() and len(query.rows()) == 6, "its messages read")
    running.stop()
    assert query.places() == stored_places(admin, topic)


def test_a_mistyped_topic_is_refused_on_request_where_brokers_would_make_it(write, admin, read, make_topic):
    topic, mistyped = make_topic(), "QXVZWYKJ"  # like no other topic: no hint

    by_option = error_of(lambda: write([("a",)], "body string", topic=mistyped, createTopic="false"))
    by_column = error_of(lambda: write([("a", mistyped)], "body string, topic string", createTopic="false"))
    write([("a",)], "body string", topic=topic, createTopic="false")

    for text in (by_option, by_column):
        assert f"topic '{mistyped}' does not exist and option 'createTopic' is false" in text
    with pytest.raises(TopicNotFoundError):
        admin.fetch_publish_queues(mistyped)
    assert read(topic=topic).count() == 1
