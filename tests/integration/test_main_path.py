"""Range reads in a namespace, on a real cluster."""

import uuid

import pytest

from rmqtools import Admin, Client, ClientConfig, Message, Producer, ProducerConfig, QueueRange
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.broker


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
