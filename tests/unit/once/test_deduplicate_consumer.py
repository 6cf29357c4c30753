"""The wrapper as a listener of a consumer on the fake cluster."""

from typing import Any

import pytest

from rmqtools import Message, Producer, ProducerConfig, PushConsumer, PushConsumerConfig
from rmqtools.once import MemoryStore, deduplicate
from tests.support.cluster_scene import wait_until


@pytest.mark.parametrize("orderly", [False, True])
def test_copies_in_several_queues_are_consumed_once_and_the_context_tells_the_mode(
    fake_rocketmq, topic, orderly
):
    heard, modes = list[Any](), set()

    def listen(messages, context):
        heard.extend(message.body for message in messages)
        modes.add(context.is_orderly)

    once = deduplicate(MemoryStore(), listen, key=lambda message: message.keys)
    with Producer(ProducerConfig(name_server=fake_rocketmq.name_server)) as producer:
        for body in (b"1", b"2", b"1", b"1"):
            producer.send(Message(topic, body, keys=body.decode()))
    config = PushConsumerConfig(
        name_server=fake_rocketmq.name_server,
        group="once",
        orderly=orderly,
        consume_from="CONSUME_FROM_FIRST_OFFSET",
        suspend_current_queue_time=0.1,
    )
    consumer = PushConsumer(config)
    consumer.subscribe(topic, once)
    with consumer:
        wait_until(lambda: once.dropped == 2)

    assert sorted(heard) == [b"1", b"2"]
    assert modes == {orderly}
