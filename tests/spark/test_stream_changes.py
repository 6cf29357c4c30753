"""Queues, brokers and topics that come and go while a query runs, or between two runs."""

import re

import pytest

from rmqtools import MessageQueue
from tests.spark.streams import await_true, error_of, fill, next_offsets, stored_places

pytestmark = [pytest.mark.spark, pytest.mark.broker]

REMEDY = "set option 'failOnDataLoss' to false"


def test_new_queues_brokers_and_topics_are_read_from_their_beginning(stream, make_topic, producer, admin):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    query = stream(topicPattern=f"{re.escape(topic)}.*", pollInterval="50ms")
    running = query.start()

    admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2, broker_names=["broker-a"])
    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-b"])
    admin.create_topic(f"{topic}-new", read_queue_nums=1, write_queue_nums=1)
    queues = admin.fetch_subscribe_queues(topic) + admin.fetch_subscribe_queues(f"{topic}-new")
    fill(producer, admin, dict.fromkeys(queues, 3))

    expected = stored_places(admin, topic, f"{topic}-new")
    assert len(expected) == 15
    await_true(lambda: query.is_written() and len(query.rows()) >= 15, "all messages read")
    running.stop()
    assert query.places() == expected


@pytest.mark.slow  # the planner by scripted brokers
def test_a_topic_that_is_deleted_fails_the_query_and_names_offsets_and_option(
    stream, make_topic, producer, admin
):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    fill(producer, admin, {MessageQueue(topic, "broker-a", 0): 5})
    query = stream(topic=topic, startingOffsets="earliest", pollInterval="50ms")
    running = query.start()
    await_true(lambda: query.is_written() and len(query.rows()) == 5, "all messages read")

    admin.delete_topic(topic)

    text = error_of(lambda: running.awaitTermination(60))
    assert re.search(
        f"{topic}/broker-a/0 (is gone|ends at 0, before offset 5)", text
    )  # broker first, then route
    assert REMEDY in text

    text = error_of(query.run)
    assert f"{topic}/broker-a/0 is gone" in text
    assert "offsets from 5 on cannot be read" in text
    assert REMEDY in text


@pytest.mark.slow  # one that fails shows the discovery
def test_a_topic_that_is_deleted_is_passed_over_on_request(stream, make_topic, producer, admin):
    gone, left = make_topic(queues=1), make_topic(queues=1)
    options = {"topics": f"{gone},{left}", "startingOffsets": "earliest", "failOnDataLoss": "false"}
    fill(producer, admin, dict.fromkeys(admin.fetch_subscribe_queues(gone), 1))
    fill(producer, admin, dict.fromkeys(admin.fetch_subscribe_queues(left), 1))
    query = stream(**options)
    query.run()
    read_before = stored_places(admin, gone)

    admin.delete_topic(gone)
    fill(producer, admin, dict.fromkeys(admin.fetch_subscribe_queues(left), 2))
    query.run()

    assert query.places() == read_before + stored_places(admin, left)


@pytest.mark.slow  # test_losses.py recognises such a topic
def test_a_topic_made_anew_ends_before_the_offset_that_is_next(stream, make_topic, producer, admin):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    queue = MessageQueue(topic, "broker-a", 0)
    fill(producer, admin, {queue: 5})
    query = stream(topic=topic, startingOffsets="earliest")
    query.run()
    admin.delete_topic(topic)
    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])
    fill(producer, admin, {queue: 2})

    text = error_of(query.run)
    assert f"{topic}/broker-a/0 ends at 2, before offset 5 that is next" in text
    assert REMEDY in text

    lenient = stream(topic=topic, failOnDataLoss="false")
    lenient.run()
    fill(producer, admin, {queue: 1})
    lenient.run()
    assert next_offsets(lenient.planned()[-1], [queue]) == [3]
    assert [row.queueOffset for row in lenient.rows()].count(2) == 2  # the old one, and the new one
