"""Every way of sending, on a real cluster."""

import os
from collections.abc import Iterator

import pytest

from rmqtools import Admin, Client, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from rmqtools.errors import BrokerError, MessageRejectedError
from rmqtools.model.names import with_namespace
from tests.support.reading import await_messages, await_readable, read_all

pytestmark = pytest.mark.broker


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        pytest.param([], "no messages", id="none"),
        pytest.param(
            [Message("a", b"x"), Message("b", b"x")], r"one topic, not \['a', 'b'\]", id="two-topics"
        ),
        pytest.param([Message("a", b"x", delay_level=1)], "delay cannot be in a batch", id="delay"),
    ],
)
def test_what_cannot_be_a_batch_is_refused(producer, messages, text):
    with pytest.raises(MessageRejectedError, match=text):
        producer.send_batch(messages)


def test_the_first_delay_level_is_a_second(producer, client, admin, make_topic):
    topic = make_topic(queues=1)

    producer.send(Message(topic, b"later", delay_level=1))
    (message,) = await_messages(client, admin, topic, 1)

    assert (message.store_timestamp_ms - message.born_timestamp_ms) / 1000 == pytest.approx(1.0, abs=1.0)


def test_in_a_namespace_topics_have_its_prefix_on_the_servers_and_not_in_results(
    local_cluster, client, admin
):
    name = f"t-{os.getpid()}"
    stored_name = with_namespace(name, "INST")
    admin.create_topic(stored_name, read_queue_nums=1, write_queue_nums=1)
    settings = {"name_server": local_cluster.name_server, "namespace": "INST"}

    with Producer(ProducerConfig(**settings)) as producer, Client(ClientConfig(**settings)) as inside:
        result = producer.send(Message(name, b"x"))
        (stored,) = await_messages(client, admin, stored_name, 1)
        with Admin(inside) as admin_inside:
            (read,) = await_messages(inside, admin_inside, name, 1)

    assert (stored.topic, stored.body) == (f"INST%{name}", b"x")
    assert (result.queue.topic, read.topic) == (name, name)


@pytest.fixture(scope="module")
def timer_cluster() -> Iterator[LocalCluster]:
    with LocalCluster(timer_wheel=True) as cluster:
        yield cluster


@pytest.mark.slow  # Java reads the same messages
def test_timer_messages_come_at_their_time_and_recalled_ones_never(timer_cluster):
    settings = ProducerConfig(name_server=timer_cluster.name_server, group="timers")
    with Producer(settings) as producer, Client(settings) as client, Admin(settings) as admin:
        admin.create_topic("timers", read_queue_nums=1, write_queue_nums=1)
        now = admin._admin._client.clock.now_ms()
        recalled = producer.send(Message("timers", b"never", delay=4.0))
        after = producer.send(Message("timers", b"after", delay=5.0))
        at = producer.send(Message("timers", b"at", deliver_at_ms=now + 8000))
        assert producer.recall("timers", recalled.recall_handle or "") == recalled.msg_id
        messages = await_messages(client, admin, "timers", 2, timeout=60)

    by_body = {message.body: message for message in messages}
    assert set(by_body) == {b"after", b"at"}
    assert {by_body[b"after"].msg_id, by_body[b"at"].msg_id} == {after.msg_id, at.msg_id}
    assert (by_body[b"after"].store_timestamp_ms - now) / 1000 == pytest.approx(5, abs=2)
    assert (by_body[b"at"].store_timestamp_ms - now) / 1000 == pytest.approx(8, abs=2)


def test_a_broker_without_a_timer_wheel_says_so(producer, make_topic):
    with pytest.raises(Exception, match="timer") as caught:
        producer.send(Message(make_topic(), b"x", delay=5.0))
    assert isinstance(caught.value.__cause__, BrokerError)


def test_send_many_keeps_the_order_given_within_each_queue(producer, client, admin, make_topic):
    topic = make_topic(queues=1, broker_names=["broker-a"])

    results = producer.send_many([Message(topic, b"%d" % n + bytes(2000)) for n in range(10_000)])

    await_readable(admin, results)
    numbers = [int(message.body.rstrip(b"\0")) for message in read_all(client, admin, topic)]
    assert numbers == list(range(10_000))
