"""Names as brokers know them, and as users do."""

import pytest

from rmqtools.engine.group.member import TopicNames
from rmqtools.model.queue import MessageQueue
from tests.unit.engine.consumer.push_scene import stored

NAMES = TopicNames("ns%g", "ns")
PLAIN = TopicNames("g", None)


def test_topics_and_queues_have_the_namespace_on_the_wire_only():
    wire, plain = MessageQueue("ns%T", "broker-a", 3), MessageQueue("T", "broker-a", 3)

    assert (NAMES.wire_topic("T"), NAMES.plain_topic("ns%T")) == ("ns%T", "T")
    assert (NAMES.wire_queue(plain), NAMES.plain_queue(wire)) == (wire, plain)
    assert (PLAIN.wire_queue(plain), PLAIN.plain_queue(plain)) == (plain, plain)


def test_a_message_of_a_plain_topic_is_handed_on_as_it_is():
    message = stored(1)

    assert PLAIN.plain_message(message) is message


@pytest.mark.parametrize("namespace", ["A", "Z"])
def test_a_message_of_a_namespace_has_its_plain_topic_whatever_comes_first_in_the_alphabet(namespace):
    names = TopicNames(f"{namespace}%g", namespace)

    assert names.plain_message(stored(1, topic=f"{namespace}%T")).topic == "T"


def test_a_message_of_the_retry_topic_has_the_topic_it_was_sent_to():
    message = stored(1, topic="%RETRY%ns%g", RETRY_TOPIC="ns%T")

    assert NAMES.plain_message(message).topic == "T"


def test_a_message_of_the_retry_topic_of_a_topic_that_was_popped_has_that_topic():
    names = TopicNames("ns%g", "ns")
    names.was_popped("%RETRY%ns%g_ns%T", "ns%T")

    assert names.plain_message(stored(1, topic="%RETRY%ns%g_ns%T")).topic == "T"
