"""Admin, producer and range reads on a real cluster of two masters."""

import uuid

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    Message,
    Producer,
    ProducerConfig,
    QueueRange,
)
from rmqtools.errors import (
    DataLossError,
    TopicNotFoundError,
)
from tests.support.patience import PATIENCE
from tests.support.reading import await_readable, read_queues

pytestmark = pytest.mark.broker


def test_send_many_stores_each_message_once_where_its_result_says(producer, client, admin, make_topic):
    topic = make_topic()

    results = producer.send_many([Message(topic, b"%d" % n, keys=[f"k{n}"]) for n in range(5000)])
    await_readable(admin, results)
    stored = {
        (queue, message.queue_offset): (message.body, message.msg_id)
        for queue, messages in read_queues(client, admin, topic).items()
        for message in messages
    }

    assert stored == {(r.queue, r.queue_offset): (b"%d" % n, r.msg_id) for n, r in enumerate(results)}


def test_a_topic_is_made_changed_and_deleted(admin, make_topic):
    topic = make_topic(queues=2)
    assert len(admin.fetch_subscribe_queues(topic)) == 4

    admin.create_topic(topic, read_queue_nums=3, write_queue_nums=3)
    assert len(admin.fetch_publish_queues(topic)) == 6

    assert topic in admin.fetch_topic_list()
    admin.delete_topic(topic)
    with pytest.raises(TopicNotFoundError, match=topic):
        admin.fetch_route(topic)


def test_offsets_beyond_the_end_are_data_loss_not_an_empty_answer(producer, local_cluster, make_topic):
    queue = producer.send(Message(make_topic(queues=1), b"x")).queue
    config = ClientConfig(name_server=local_cluster.name_server, request_timeout=2.0)  # it waits so long

    with (
        Client(config) as client,
        pytest.raises(DataLossError, match=r"offsets \[1, 5\) .* the broker has \[0, 1\)"),
    ):
        list(client.read_blocks(QueueRange(queue, 0, 5)))


def test_messages_of_a_range_are_those_sent_and_tags_are_compared_as_text(
    producer, client, admin, make_topic
):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    tags = ["Aa", "BB", "C"]  # the first two have the same hash code, which is all that brokers compare
    results = [producer.send(Message(topic, b"%d" % n, tags[n % 3], (f"k{n}",))) for n in range(30)]
    (queue,) = admin.fetch_subscribe_queues(topic)
    admin.await_readable({queue: 30}, timeout=PATIENCE)

    whole = [m for found in client.read_messages(QueueRange(queue, 0, 30), max_messages=7) for m in found]
    some = [m for found in client.read_messages(QueueRange(queue, 3, 30), tags=["BB"]) for m in found]

    assert [m.msg_id for m in whole] == [result.msg_id for result in results]
    assert [m.offset_msg_id for m in whole] == [result.offset_msg_id for result in results]
    assert [(m.topic, m.body, m.keys) for m in whole] == [(topic, b"%d" % n, f"k{n}") for n in range(30)]
    assert [m.queue_offset for m in some] == list(range(4, 30, 3))


def test_messages_read_in_a_namespace_have_plain_topics_and_an_admin_sees_whole_ones(local_cluster):
    settings = {"name_server": local_cluster.name_server, "namespace": "ns"}
    name = f"test-{uuid.uuid4().hex[:12]}"
    with Client(ClientConfig(**settings)) as client, Admin(client) as admin:
        admin.create_topic(name, read_queue_nums=1, write_queue_nums=1)
        with Producer(ProducerConfig(**settings)) as producer:
            result = producer.send(Message(name, b"x"))
        admin.await_readable({result.queue: 1}, timeout=PATIENCE)
        range_ = QueueRange(result.queue, 0, 1)

        read = [message for found in client.read_messages(range_) for message in found]
        seen = [message for found in admin.read_messages(range_) for message in found]

    assert [(message.topic, message.body) for message in read] == [(name, b"x")]
    assert [message.topic for message in seen] == [f"ns%{name}"]
