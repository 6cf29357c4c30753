"""TLS and access control between clients and a 5.x proxy, and between the proxy and its brokers."""

from collections.abc import Iterator

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    ConsumeFromWhere,
    Message,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
    QueueRange,
)
from rmqtools.cluster import ClusterSecurity, LocalCluster
from rmqtools.errors import RocketMQError
from rmqtools.sync.loop import Bridge
from tests.integration.test_security_matrix import create_bob, texts
from tests.support.listening import Heard, new_group, numbers
from tests.support.proxy import running_server
from tests.support.reading import await_messages
from tests.support.resting import RestingCluster

pytestmark = [pytest.mark.broker, pytest.mark.slow]  # test_proxy.py and test_security_matrix.py, each alone

TOPIC = "guarded"


@pytest.fixture(scope="module")
def secured() -> Iterator[LocalCluster]:
    """TLS and ACL 2.0; the user bob may do nothing."""
    with RestingCluster(security=ClusterSecurity()) as cluster:
        with Admin(ClientConfig.from_mapping(texts(cluster.client_settings))) as admin:
            admin.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)
        Bridge().run(lambda: create_bob(cluster))
        yield cluster


@pytest.fixture(scope="module")
def settings(secured: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of clients that the proxy lets in; it checks its clients and signs its own requests."""
    with running_server(secured, tmp_path_factory.mktemp("proxy"), signs=True, checks=True) as server:
        yield texts(secured.client_settings) | {"name_server": server.address}


def send(settings: dict[str, str]) -> None:
    with Producer(ProducerConfig.from_mapping({"group": "g", **settings})) as producer:
        producer.send(Message(TOPIC, b"0"))


def test_with_keys_and_certificates_messages_are_sent_read_and_consumed(settings):
    config = ClientConfig.from_mapping(settings)
    with (
        Producer(ProducerConfig.from_mapping({"group": "g", **settings})) as producer,
        Admin(config) as admin,
        Client(config) as client,
    ):
        (queue,) = admin.fetch_subscribe_queues(TOPIC)
        begin = admin.max_offset(queue)
        producer.send(Message(TOPIC, b"0"))
        producer.send_many([Message(TOPIC, body) for body in numbers(1, 10)])
        await_messages(client, admin, TOPIC, begin + 10)
        read = [m.body for some in client.read_messages(QueueRange(queue, begin, begin + 10)) for m in some]
    heard = Heard()
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET.value
    consumer = PushConsumer(
        PushConsumerConfig.from_mapping({"group": new_group(), "consume_from": first, **settings})
    )
    consumer.subscribe(TOPIC, heard)
    with consumer:
        heard.wait(begin + 10)

    assert sorted(read) == numbers(10)
    assert len(heard.bodies) == begin + 10


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        pytest.param({"secret_key": "wrong"}, "check signature failed.*secret_key", id="wrong-key"),
        pytest.param(
            {"access_key": "bob", "secret_key": "bobs-key"},
            f"User:bob has no permission to access Topic:{TOPIC}",
            id="no-right",
        ),
        pytest.param({"access_key": None, "secret_key": None}, "username cannot be null", id="no-keys"),
        pytest.param({"tls_enable": "false", "tls_ca_file": None}, "set tls_enable=True", id="no-tls"),
        pytest.param({"tls_ca_file": None}, "certificate verify failed", id="unknown-authority"),
    ],
)
def test_a_client_that_may_not_enter_is_told_why(settings, wrong, words):
    given = {name: value for name, value in {**settings, **wrong}.items() if value is not None}

    with pytest.raises(RocketMQError, match=words):
        send(given)


def test_a_proxy_that_signs_and_does_not_check_lets_everybody_in(secured, tmp_path):
    """Documented in docs/compatibility.md: the brokers see the proxy's keys only."""
    with running_server(secured, tmp_path, signs=True) as server:
        ca_file = str(secured.client_settings["tls_ca_file"])
        send({"name_server": server.address, "tls_enable": "true", "tls_ca_file": ca_file})
