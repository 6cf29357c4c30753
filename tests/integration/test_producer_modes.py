"""Every way of sending, on a real cluster."""

import multiprocessing
import os
from collections.abc import Iterator

import pytest

from rmqtools import Admin, Client, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from rmqtools.errors import BrokerError, ClientStateError, MessageRejectedError
from rmqtools.model.names import with_namespace
from rmqtools.select import (
    SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom,
    SelectMessageQueueByRandom,
)
from tests.support.reading import await_messages, await_readable, read_all

pytestmark = pytest.mark.broker


def test_asynchronous_sends_give_their_results_through_futures(producer, admin, make_topic):
    topic = make_topic()

    results = [
        future.result(10) for future in [producer.send_async(Message(topic, b"x")) for _ in range(200)]
    ]

    await_readable(admin, results)
    assert sum(admin.max_offset(queue) for queue in admin.fetch_subscribe_queues(topic)) == 200


def test_one_way_sends_arrive_although_nobody_answers(producer, client, admin, make_topic):
    topic = make_topic()

    for number in range(20):
        producer.send_oneway(Message(topic, b"%d" % number))

    messages = await_messages(client, admin, topic, 20)
    assert {message.body for message in messages} == {b"%d" % n for n in range(20)}


def test_messages_of_one_sharding_key_are_in_one_queue_in_the_order_they_were_given(
    producer, client, admin, make_topic
):
    topic = make_topic()
    keys = [f"order-{n}" for n in range(7)]

    futures = [
        producer._bridge.submit(
            producer._producer.send_orderly(Message(topic, b"%d" % n, sharding_key=keys[n % 7]))
        )
        for n in range(210)
    ]
    await_readable(admin, [future.result(30) for future in futures])

    by_key: dict[str, list[tuple[int, int]]] = {}
    for message in read_all(client, admin, topic):
        key = message.properties["__SHARDINGKEY"]
        by_key.setdefault(key, []).append((message.queue_id, int(message.body)))
    assert {key: [number for _, number in seen] for key, seen in by_key.items()} == {
        key: list(range(place, 210, 7)) for place, key in enumerate(keys)
    }


def test_a_batch_is_one_request_and_its_messages_lie_side_by_side(producer, client, admin, make_topic):
    topic = make_topic()

    results = producer.send_batch([Message(topic, b"%d" % n, tags="t") for n in range(50)])

    assert {result.queue for result in results} == {results[0].queue}
    assert [result.queue_offset for result in results] == list(range(50))
    await_readable(admin, results)
    assert [message.body for message in read_all(client, admin, topic)] == [b"%d" % n for n in range(50)]


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


def test_selectors_choose_the_queue(producer, make_topic):
    topic = make_topic()
    message = Message(topic, b"x")

    by_hash = {
        producer.send(message, selector=SelectMessageQueueByHash(), arg="order-1").queue for _ in range(5)
    }
    in_room = {
        producer.send(message, selector=SelectMessageQueueByMachineRoom("broker"), arg=n).queue
        for n in range(8)
    }
    anywhere = {producer.send(message, selector=SelectMessageQueueByRandom()).queue for _ in range(5)}
    first = producer.send(message, selector=lambda queues, message, arg: queues[arg], arg=0).queue

    assert len(by_hash) == 1
    assert len(in_room) == 8
    assert all(queue.topic == topic for queue in anywhere)
    assert (first.broker_name, first.queue_id) == ("broker-a", 0)


def test_a_machine_room_without_a_broker_is_refused(producer, make_topic):
    with pytest.raises(MessageRejectedError, match="machine room 'moon'"):
        producer.send(Message(make_topic(), b"x"), selector=SelectMessageQueueByMachineRoom("moon"))


@pytest.mark.parametrize(("level", "seconds"), [(1, 1.0), (2, 5.0)])
def test_a_delay_level_delays_by_its_time(producer, client, admin, make_topic, level, seconds):
    topic = make_topic(queues=1)

    producer.send(Message(topic, b"later", delay_level=level))
    (message,) = await_messages(client, admin, topic, 1)

    assert (message.store_timestamp_ms - message.born_timestamp_ms) / 1000 == pytest.approx(seconds, abs=1.0)


def test_in_a_namespace_topics_have_its_prefix_on_the_servers_and_not_in_results(local_cluster, admin):
    name = f"t-{os.getpid()}"
    admin.create_topic(with_namespace(name, "INST"), read_queue_nums=1, write_queue_nums=1)
    settings = {"name_server": local_cluster.name_server, "namespace": "INST"}

    with Producer(ProducerConfig(**settings)) as producer, Client(ClientConfig(**settings)) as client:
        result = producer.send(Message(name, b"x"))
        with Admin(client) as inside:
            await_readable(inside, [result])
            (message,) = read_all(client, inside, name)

    assert result.queue.topic == name
    assert message.topic == f"INST%{name}"


@pytest.fixture(scope="module")
def timer_cluster() -> Iterator[LocalCluster]:
    with LocalCluster(timer_wheel=True) as cluster:
        yield cluster


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


def test_a_text_that_is_no_recall_handle_is_refused(producer):
    with pytest.raises(MessageRejectedError, match="'nonsense' is none"):
        producer.recall("t", "nonsense")


def test_a_broker_without_a_timer_wheel_says_so(producer, make_topic):
    with pytest.raises(Exception, match="timer") as caught:
        producer.send(Message(make_topic(), b"x", delay=5.0))
    assert isinstance(caught.value.__cause__, BrokerError)


def test_latency_fault_avoidance_shows_what_it_knows(local_cluster, make_topic):
    topic = make_topic()
    config = ProducerConfig(name_server=local_cluster.name_server, send_latency_fault_enable=True)
    with Producer(config) as producer:
        for _ in range(8):
            producer.send(Message(topic, b"x"))
        health = producer.broker_health()

    assert sorted(health) == ["broker-a", "broker-b"]
    assert all(broker.is_reachable and broker.latency < 60 for broker in health.values())


def _in_child(producer: Producer, topic: str, name_server: str, answers) -> None:
    try:
        producer.send(Message(topic, b"inherited"))
    except ClientStateError as error:
        answers.put(str(error))
    with Producer(ProducerConfig(name_server=name_server)) as own:
        answers.put(own.send(Message(topic, b"own")).status.name)


def test_a_producer_inherited_by_fork_raises_and_a_new_one_in_the_child_works(
    producer, local_cluster, make_topic
):
    topic = make_topic()
    producer.send(Message(topic, b"parent"))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()

    child = context.Process(target=_in_child, args=(producer, topic, local_cluster.name_server, answers))
    child.start()
    seen = [answers.get(timeout=30), answers.get(timeout=30)]
    child.join(30)

    assert "through a fork: make a new client in the child" in seen[0]
    assert (seen[1], child.exitcode) == ("SEND_OK", 0)
    assert producer.send(Message(topic, b"parent")).status.name == "SEND_OK"


def test_send_many_keeps_the_order_given_within_each_queue(producer, client, admin, make_topic):
    topic = make_topic(queues=1, broker_names=["broker-a"])

    results = producer.send_many([Message(topic, b"%d" % n + bytes(2000)) for n in range(10_000)])

    await_readable(admin, results)
    numbers = [int(message.body.rstrip(b"\0")) for message in read_all(client, admin, topic)]
    assert numbers == list(range(10_000))
