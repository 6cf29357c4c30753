import pickle

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
from tests.support.cluster_scene import wait_until

CLASSES = [
    (Client, ClientConfig),
    (Admin, ClientConfig),
    (Producer, ProducerConfig),
    (PullConsumer, PullConsumerConfig),
    (PushConsumer, PushConsumerConfig),
]
ASYNCHRONOUS = [(getattr(aio, class_.__name__), config) for class_, config in CLASSES]


def settings_of(config: type) -> dict[str, str]:
    return {"name_server": "127.0.0.1:1"} | ({"group": "g"} if "Consumer" in config.__name__ else {})


@pytest.mark.parametrize(("class_", "config"), [*CLASSES, *ASYNCHRONOUS])
def test_a_client_is_not_pickled_and_says_what_to_do_instead(class_, config):
    with pytest.raises(TypeError, match=f"a {class_.__name__} has connections .*: pickle its config"):
        pickle.dumps(class_(config(**settings_of(config))))


@pytest.mark.parametrize(("class_", "config"), [*CLASSES, *ASYNCHRONOUS])
def test_a_config_of_another_class_is_refused_by_name(class_, config):
    wrong = "127.0.0.1:1" if config is ClientConfig else ClientConfig(name_server="127.0.0.1:1")

    with pytest.raises(ConfigError, match=f"got a {type(wrong).__name__}: want a {config.__name__}"):
        class_(wrong)


@pytest.mark.parametrize(("class_", "config"), [*CLASSES, *ASYNCHRONOUS])
def test_a_representation_shows_group_server_and_state_and_no_secret(class_, config):
    keys = {"access_key": "alice", "secret_key": "hunter2"}
    settings = settings_of(config) | keys
    group = f"group={config(**settings).group!r} " if hasattr(config, "group") else ""
    made = class_(config(**settings))
    name = f"{class_.__module__}.{class_.__name__}"

    assert repr(made) == f"<{name} {group}name_server='127.0.0.1:1' state='new'>"


def test_a_representation_shows_the_state_and_no_password_of_a_list_of_name_servers():
    client = Producer(
        ProducerConfig(name_server="http://user:hunter2@127.0.0.1:1/list", client_ip="127.0.0.1")
    )
    with client:
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


def test_a_producer_is_connected_from_its_first_send_until_it_is_closed():
    with FakeCluster() as cluster:
        cluster.create_topic("t")
        producer = Producer(ProducerConfig(name_server=cluster.name_server))
        seen = [producer.is_connected]
        with producer:
            seen.append(producer.is_connected)
            producer.fetch_publish_queues("t")
            seen.append(producer.is_connected)  # the name server is no broker
            producer.send(Message("t", b"body"))
            seen.append(producer.is_connected)
        seen.append(producer.is_connected)

    assert seen == [False, False, False, True, False]


def test_a_producer_that_knows_its_topic_is_connected_by_heartbeats_and_again_after_a_restart_of_the_broker():
    with FakeCluster() as cluster:
        cluster.create_topic("t")
        config = ProducerConfig(name_server=cluster.name_server, heartbeat_broker_interval=0.05)
        with Producer(config) as producer:
            producer.fetch_publish_queues("t")
            wait_until(lambda: producer.is_connected)
            cluster.stop("broker-a")
            wait_until(lambda: not producer.is_connected)
            cluster.restart("broker-a")
            wait_until(lambda: producer.is_connected)


def test_a_producer_is_connected_while_one_of_two_brokers_is_left():
    with FakeCluster(brokers=("broker-a", "broker-b")) as cluster:
        cluster.create_topic("t")
        with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            for queue in producer.fetch_publish_queues("t"):
                producer.send(Message("t", b"body"), queue=queue)
            cluster.stop("broker-a")
            assert producer.is_connected
            cluster.stop("broker-b")
            wait_until(lambda: not producer.is_connected)


def test_a_broker_that_answers_no_heartbeat_counts_as_not_connected_until_it_does():
    with FakeCluster() as cluster:
        cluster.create_topic("t")
        config = ProducerConfig(
            name_server=cluster.name_server, request_timeout=0.2, heartbeat_broker_interval=0.05
        )
        with Producer(config) as producer:
            producer.send(Message("t", b"body"))
            cluster.freeze("broker-a")
            wait_until(lambda: not producer.is_connected)
            cluster.thaw("broker-a")
            wait_until(lambda: producer.is_connected)


def test_a_push_consumer_is_connected_once_it_has_started():
    with FakeCluster() as cluster:
        cluster.create_topic("t")
        consumer = PushConsumer(PushConsumerConfig(name_server=cluster.name_server, group="g"))
        consumer.subscribe("t", lambda messages, context: None)
        with consumer:
            assert consumer.is_connected
        assert not consumer.is_connected
