"""Streaming queries while brokers die and come back."""

import pytest

from rmqtools import Admin, ClientConfig, Producer, ProducerConfig
from tests.spark.streams import Stream, await_true, fill, stored_places

pytestmark = [pytest.mark.spark, pytest.mark.docker]


@pytest.mark.slow  # batches outlive a paused broker by the same reads
def test_a_query_outlives_a_broker_that_is_killed_and_started_and_reads_all_of_it(
    faulty_cluster, new_topic, spark, tmp_path
):
    topic, name_server = new_topic(queues=1), faulty_cluster.name_server
    options = {"nameServer": name_server, "topic": topic, "startingOffsets": "earliest"}
    with (
        Admin(ClientConfig(name_server=name_server)) as admin,
        Producer(ProducerConfig(name_server=name_server, group="tests")) as producer,
    ):
        a, b, c = admin.fetch_publish_queues(topic)
        fill(producer, admin, {a: 5, b: 5, c: 5})
        query = Stream(spark, tmp_path, {**options, "pollInterval": "200ms"})
        running = query.start()
        await_true(lambda: query.is_written() and len(query.rows()) == 15, "all that was there")

        faulty_cluster.kill("broker-b")
        assert b not in admin.fetch_subscribe_queues(topic)  # the name server has forgotten it
        fill(producer, admin, {a: 5, c: 5})
        await_true(lambda: len(query.rows()) == 25, "what came to the others meanwhile")
        faulty_cluster.start("broker-b")
        await_true(lambda: b in admin.fetch_subscribe_queues(topic), "the broker is back")
        fill(producer, admin, {b: 5})
        await_true(lambda: len(query.rows()) == 30, "what came to it afterwards")

        running.stop()
        assert query.places() == stored_places(admin, topic)
