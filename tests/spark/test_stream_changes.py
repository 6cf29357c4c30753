"""Queues, brokers and topics that come while a query runs."""

import re

from tests.spark.streams import await_true, fill, stored_places


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
