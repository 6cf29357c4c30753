"""Static topics, whose queues may move to another broker, through a 5.x proxy."""

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    ConsumeFromWhere,
    Message,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.errors import SendError
from tests.support.listening import Heard, new_group, numbers
from tests.support.reading import await_messages

pytestmark = pytest.mark.broker
QUEUES = 2


@pytest.mark.slow  # a proxy and a cluster of its own
def test_a_static_topic_passes_until_a_queue_moves(proxy, static_topic, mqadmin):
    heard, first = Heard(), ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    consumer = PushConsumer(PushConsumerConfig(name_server=proxy, group=new_group(), consume_from=first))
    consumer.subscribe(static_topic, heard)
    with Producer(ProducerConfig(name_server=proxy, group="static")) as sender:
        for body in numbers(5):
            sender.send(Message(static_topic, body))
        sender.send_many([Message(static_topic, body) for body in numbers(5, 10)])
        config = ClientConfig(name_server=proxy)
        with Client(config) as reader, Admin(config) as admin, consumer:
            read = await_messages(reader, admin, static_topic, 10)
            heard.wait(10)

        mqadmin.run("remappingStaticTopic", "-t", static_topic, "-b", "broker-b")
        with pytest.raises(SendError, match=r"NOT_LEADER_FOR_QUEUE.*has moved.*give the name servers"):
            sender.send(Message(static_topic, b"late"))

    assert sorted(message.body for message in read) == numbers(10)
    assert sorted(heard.bodies) == numbers(10)
