"""Consuming a static topic whose queues move to another broker, on a real cluster of two."""

import pytest

from rmqtools import Message, Producer, ProducerConfig
from tests.support.cluster_scene import wait_until
from tests.support.listening import Heard, new_group

pytestmark = pytest.mark.broker
QUEUES = 2


@pytest.fixture
def sender(local_cluster):
    settings = {"name_server": local_cluster.name_server, "group": "static", "poll_name_server_interval": 0.5}
    with Producer(ProducerConfig(**settings)) as producer:
        yield producer


def send(sender: Producer, topic: str, numbers: range) -> None:
    for number in numbers:
        sender.send(Message(topic, b"%d" % number), timeout=20)


@pytest.mark.slow  # a cluster of its own
@pytest.mark.parametrize(
    "orderly", [pytest.param(True, id="orderly"), pytest.param(False, id="concurrently")]
)
def test_a_static_topic_is_consumed_once_wherever_its_queues_move(
    orderly, static_topic, mqadmin, consume, sender
):
    group, first, second = new_group(), Heard(), Heard()
    settings = {
        "group": group,
        "orderly": orderly,
        "poll_name_server_interval": 0.5,
        "delay_after_error": 0.2,
    }
    send(sender, static_topic, range(20))
    consumer = consume(static_topic, first, **settings)
    first.wait(20)
    said = mqadmin.run("remappingStaticTopic", "-t", static_topic, "-b", "broker-b")
    send(sender, static_topic, range(20, 40))
    first.wait(40)
    consumer.close()

    places = {(message.queue_id, message.queue_offset) for message in first.messages}
    assert sorted(map(int, first.bodies)) == list(range(40)), said
    assert len(places) == 40
    assert {message.queue_id for message in first.messages} == set(range(QUEUES))

    send(sender, static_topic, range(40, 50))
    consume(static_topic, second, **settings)
    second.wait(10)
    wait_until(lambda: len(second.bodies) >= 10)
    assert sorted(map(int, second.bodies)) == list(range(40, 50))
