"""New groups, started consumers, sent messages; mqadmin, and static topics made by it."""

import uuid

import pytest

from rmqtools import ConsumeFromWhere, Message, PushConsumer, PushConsumerConfig
from tests.support.listening import new_group
from tests.support.mqadmin import Mqadmin
from tests.support.reading import await_readable


@pytest.fixture
def group() -> str:
    """The name of a new group."""
    return new_group()


@pytest.fixture
def consume(local_cluster):
    """``consume(topic, listener, ...)``: a started consumer of its own group, from the first offset on."""
    consumers = []

    def consume(topic, listener, *, tags="*", sql=None, **settings):
        given = {
            "name_server": local_cluster.name_server,
            "group": new_group(),
            "consume_from": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        }
        consumer = PushConsumer(PushConsumerConfig(**(given | settings)))
        consumer.subscribe(topic, listener, tags=tags, sql=sql)
        consumer.start()
        consumers.append(consumer)
        return consumer

    yield consume
    for consumer in consumers:
        consumer.close()


@pytest.fixture
def join(consume, group):
    """``join(topic, listener, ...)``: another member of the test's group."""

    def join(topic, listener=lambda messages, context: None, **settings):
        return consume(topic, listener, group=group, **settings)

    return join


@pytest.fixture
def send(producer, admin):
    """``send(topic, bodies, ...)``: store messages in many queues and wait until they are readable."""

    def send(topic, bodies, **settings):
        messages = [Message(topic, body, **settings) for body in bodies]
        parts = [messages[start::8] for start in range(min(8, len(messages)))]
        results = [result for part in parts for result in producer.send_many(part)]
        await_readable(admin, results)
        return results

    return send


@pytest.fixture
def mqadmin(java_peer, local_cluster) -> Mqadmin:
    return Mqadmin(java_peer, local_cluster.name_server)


@pytest.fixture
def static_topic(mqadmin) -> str:
    """A topic of two logic queues, both on broker-a."""
    topic = f"static-{uuid.uuid4().hex[:8]}"
    said = mqadmin.run("updateStaticTopic", "-t", topic, "-qn", "2", "-b", "broker-a")
    assert "SUCCESS" in said.upper() or "rror" not in said, said
    return topic
