"""New groups, started consumers, sent messages; mqadmin, and static topics made by it."""

import uuid
from contextlib import ExitStack

import pytest

from rmqtools import Message
from tests.support.listening import listening, new_group
from tests.support.mqadmin import Mqadmin
from tests.support.reading import await_readable


@pytest.fixture
def group() -> str:
    """The name of a new group."""
    return new_group()


@pytest.fixture
def consume(local_cluster):
    """``consume(topic, listener, ...)``: a started consumer of its own group, from the first offset on."""
    with ExitStack() as stack:

        def consume(topic, listener, *, name_server=local_cluster.name_server, **settings):
            return stack.enter_context(listening(name_server, topic, listener, **settings))

        yield consume


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
