"""Static topics, whose queues may move to another broker, through a 5.x proxy."""

import pytest

from rmqtools import Admin, Client, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.errors import SendError
from tests.support.listening import Heard, listening, numbers
from tests.support.reading import await_messages

pytestmark = pytest.mark.broker


@pytest.mark.slow  # a proxy and a cluster of its own
def test_a_static_topic_passes_until_a_queue_moves(proxy, static_topic, mqadmin):
    heard = Heard()
    with Producer(ProducerConfig(name_server=proxy, group="static")) as sender:
        for body in numbers(5):
            sender.send(Message(static_topic, body))
        sender.send_many([Message(static_topic, body) for body in numbers(5, 10)])
        config = ClientConfig(name_server=proxy)
        with Client(config) as reader, Admin(config) as admin, listening(proxy, static_topic, heard):
            read = await_messages(reader, admin, static_topic, 10)
            heard.wait(10)

        mqadmin.run("remappingStaticTopic", "-t", static_topic, "-b", "broker-b")
        with pytest.raises(SendError, match=r"NOT_LEADER_FOR_QUEUE.*has moved.*give the name servers"):
            sender.send(Message(static_topic, b"late"))

    assert sorted(message.body for message in read) == numbers(10)
    assert sorted(heard.bodies) == numbers(10)
