"""What is the same of all client objects: pickling, refused configs, their representation, is_connected."""

import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import rmqtools
from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    Message,
    MirrorConfig,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    aio,
)
from rmqtools.errors import ConfigError
from rmqtools.testing import FakeCluster
from tests.unit.engine.consumer.push_scene import until

CLASSES = [
    (Client, ClientConfig),
    (Admin, ClientConfig),
    (Producer, ProducerConfig),
    (PullConsumer, PullConsumerConfig),
    (PushConsumer, PushConsumerConfig),
]
ASYNCHRONOUS = [(getattr(aio, class_.__name__), config) for class_, config in CLASSES]
ALL_CLIENTS = pytest.mark.parametrize(("class_", "config"), [*CLASSES, *ASYNCHRONOUS])


def settings_of(config: type) -> dict[str, str]:
    return {"name_server": "127.0.0.1:1"} | ({"group": "g"} if "Consumer" in config.__name__ else {})


@ALL_CLIENTS
def test_a_client_is_not_pickled_and_says_what_to_do_instead(class_, config):
    with pytest.raises(TypeError, match=f"a {class_.__name__} has connections .*: pickle its config"):
        pickle.dumps(class_(config(**settings_of(config))))


@ALL_CLIENTS
def test_a_config_of_another_class_is_refused_by_name(class_, config):
    wrong = "127.0.0.1:1" if config is ClientConfig else ClientConfig(name_server="127.0.0.1:1")

    with pytest.raises(ConfigError, match=f"got a {type(wrong).__name__}: want a {config.__name__}"):
        class_(wrong)


@ALL_CLIENTS
def test_a_representation_shows_group_server_and_state_and_no_secret(class_, config):
    made = config(**settings_of(config), access_key="alice", secret_key="hunter2")
    group = f"group={made.group!r} " if hasattr(config, "group") else ""
    name = f"{class_.__module__}.{class_.__name__}"

    assert repr(class_(made)) == f"<{name} {group}name_server='127.0.0.1:1' state='new'>"


def test_a_representation_shows_the_state_and_no_password_of_a_list_of_name_servers():
    config = ProducerConfig(name_server="http://user:hunter2@127.0.0.1:1/list", client_ip="127.0.0.1")
    with Producer(config) as client:
        started = repr(client)

    assert "name_server='http://127.0.0.1:1/list' state='started'" in started
    assert "state='closed'" in repr(client)


@pytest.mark.parametrize("face", [rmqtools, aio], ids=["blocking", "asyncio"])
def test_a_representation_of_what_works_on_a_producer_or_two_clients_shows_theirs(face):
    producer = face.Producer(ProducerConfig(name_server="127.0.0.1:1", group="g"))
    source, target = ClientConfig(name_server="127.0.0.1:2"), ProducerConfig(name_server="127.0.0.1:3")
    mirror = face.Mirror(MirrorConfig(source=source, target=target, topics={"a": "b"}))

    assert "DecisionLog group='g' name_server='127.0.0.1:1' state='new'>" in repr(
        face.DecisionLog(producer, "t")
    )
    assert "Mirror source='127.0.0.1:2' target='127.0.0.1:3' state='new'>" in repr(mirror)


def test_a_client_whose_constructor_has_failed_has_a_representation_too():
    assert repr(Producer.__new__(Producer)) == "<rmqtools.Producer>"


@asynccontextmanager
async def producing(*brokers: str, **settings: Any) -> AsyncIterator[tuple[FakeCluster, aio.Producer]]:
    """A started producer beside a cluster with the topic t."""
    async with FakeCluster(brokers or ("broker-a",)) as cluster:
        cluster.create_topic("t")
        async with aio.Producer(ProducerConfig(name_server=cluster.name_server, **settings)) as producer:
            yield cluster, producer


async def test_a_producer_is_connected_from_its_first_send_until_it_is_closed():
    async with producing() as (_, producer):
        assert not producer.is_connected
        await producer.fetch_publish_queues("t")
        assert not producer.is_connected  # the name server is no broker
        await producer.send(Message("t", b"body"))
        assert producer.is_connected
    assert not producer.is_connected


async def test_a_producer_is_connected_by_heartbeats_and_again_after_a_restart_of_the_broker():
    async with producing(heartbeat_broker_interval=0.05) as (cluster, producer):
        await producer.fetch_publish_queues("t")
        await until(lambda: producer.is_connected)
        cluster.stop("broker-a")
        await until(lambda: not producer.is_connected)
        cluster.restart("broker-a")
        await until(lambda: producer.is_connected)


async def test_a_producer_is_connected_while_one_of_two_brokers_is_left():
    async with producing("broker-a", "broker-b") as (cluster, producer):
        for queue in await producer.fetch_publish_queues("t"):
            await producer.send(Message("t", b"body"), queue=queue)
        cluster.stop("broker-a")
        assert producer.is_connected
        cluster.stop("broker-b")
        await until(lambda: not producer.is_connected)


async def test_a_broker_that_answers_no_heartbeat_counts_as_not_connected_until_it_does():
    async with producing(request_timeout=0.2, heartbeat_broker_interval=0.05) as (cluster, producer):
        await producer.send(Message("t", b"body"))
        cluster.freeze("broker-a")
        await until(lambda: not producer.is_connected)
        cluster.thaw("broker-a")
        await until(lambda: producer.is_connected)


def test_a_push_consumer_is_connected_once_it_has_started():
    with FakeCluster() as cluster:
        cluster.create_topic("t")
        consumer = PushConsumer(PushConsumerConfig(name_server=cluster.name_server, group="g"))
        consumer.subscribe("t", lambda messages, context: None)
        assert not consumer.is_connected
        with consumer:
            assert consumer.is_connected
        assert not consumer.is_connected
