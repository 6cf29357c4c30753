"""Brokers 4.9.7: what they do not have is refused by name, and what they have works."""

from collections.abc import Callable, Iterator

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    Message,
    MessageExt,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    QueueRange,
)
from rmqtools.errors import UnsupportedError
from rmqtools.group import MessageRequestMode
from tests.support.listening import Heard, new_group
from tests.support.patience import PATIENCE
from tests.support.resting import RestingCluster

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@pytest.fixture(scope="module")
def name_server() -> Iterator[str]:
    with RestingCluster(version="4.9.7") as cluster:
        yield cluster.name_server


@pytest.fixture(scope="module")
def admin(name_server: str) -> Iterator[Admin]:
    with Admin(ClientConfig(name_server=name_server)) as admin:
        admin.create_topic("T", read_queue_nums=2, write_queue_nums=2)
        yield admin


@pytest.fixture
def producer(name_server: str, admin: Admin) -> Iterator[Producer]:
    with Producer(ProducerConfig(name_server=name_server, group="g")) as producer:
        yield producer


@pytest.mark.parametrize(
    ("message", "text"),
    [
        pytest.param(Message("T", b"x", delay=2.0), "since 5.0.0.*is 4.9.7; use delay_level", id="delay"),
        pytest.param(Message("T", b"x", deliver_at_ms=2**41), "since 5.0.0.*is 4.9.7", id="deliver-at"),
        pytest.param(Message("T", b"x", priority=1), "since 5.4.0.*is 4.9.7", id="priority"),
    ],
)
def test_a_message_that_would_be_stored_as_an_ordinary_one_is_refused(producer, admin, message, text):
    before = [admin.max_offset(queue) for queue in admin.fetch_subscribe_queues("T")]

    with pytest.raises(UnsupportedError, match=text):
        producer.send(message)

    assert [admin.max_offset(queue) for queue in admin.fetch_subscribe_queues("T")] == before


def test_queues_shared_out_by_brokers_are_refused_at_the_start(name_server, admin):
    config = PushConsumerConfig(name_server=name_server, group=new_group(), client_rebalance=False)
    consumer = PushConsumer(config)
    consumer.subscribe("T", Heard())

    with pytest.raises(UnsupportedError, match=r"since 5\.0\.0.*is 4\.9\.7; set client_rebalance=True"):
        consumer.start()


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        pytest.param(lambda admin: admin.create_topic("U", message_type="FIFO"), "is 4.9.7", id="type"),
        pytest.param(
            lambda admin: admin.reset_queue_offset("g", admin.fetch_subscribe_queues("T")[0], 0),
            r"since 5\.1\.0.*is 4\.9\.7; move all queues by time",
            id="reset-of-one-queue",
        ),
        pytest.param(
            lambda admin: admin.set_message_request_mode("T", "g", MessageRequestMode.POP),
            "set client_rebalance=True",
            id="request-mode",
        ),
    ],
)
def test_settings_that_brokers_would_not_know_are_refused(
    admin: Admin, ask: Callable[[Admin], object], text: str
):
    with pytest.raises(UnsupportedError, match=text):
        ask(admin)


def test_a_delay_level_and_a_pull_consumer_work(name_server, producer):
    config = PullConsumerConfig(name_server=name_server, group=new_group())
    consumer = PullConsumer(config)
    consumer.subscribe("T")
    with consumer:
        stored = producer.send(Message("T", b"late", delay_level=1))
        bodies: list[MessageExt] = []
        while not bodies:
            bodies = consumer.poll(10)

    assert [message.body for message in bodies] == [b"late"]
    assert bodies[0].store_timestamp_ms - bodies[0].born_timestamp_ms >= 900, stored


def test_messages_of_a_batch_keep_their_ids_where_no_queue_holds_batches(name_server, admin):
    before = {queue: admin.max_offset(queue) for queue in admin.fetch_subscribe_queues("T")}
    with Producer(ProducerConfig(name_server=name_server, inner_batches=True)) as producer:
        results = producer.send_batch([Message("T", b"1"), Message("T", b"2")])
    queue = results[0].queue
    admin.await_readable({queue: before[queue] + 2}, timeout=PATIENCE)

    with Client(ClientConfig(name_server=name_server)) as client:
        range_ = QueueRange(queue, before[queue], before[queue] + 2)
        stored = [message.msg_id for messages in client.read_messages(range_) for message in messages]

    assert stored == [result.msg_id for result in results]
