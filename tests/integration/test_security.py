"""Signed requests against a broker with ACL 2.0; TLS with and without a client certificate."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme

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
from rmqtools.cluster import LocalCluster
from rmqtools.errors import RemotingError
from tests.support.listening import Heard
from tests.support.patience import PATIENCE
from tests.support.relay import TlsProxy

pytestmark = pytest.mark.broker

_AUTH = "org.apache.rocketmq.auth"
ACL_SETTINGS = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
    "initAuthenticationUser": '{"username":"admin","password":"admin-secret-0001"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"admin","secretKey":"admin-secret-0001"}',
    "authorizationEnabled": "true",
    "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
}
ADMIN: dict[str, Any] = {"access_key": "admin", "secret_key": "admin-secret-0001"}


@pytest.fixture(scope="module")
def acl_cluster() -> Iterator[LocalCluster]:
    with LocalCluster(broker_settings=ACL_SETTINGS) as cluster:
        yield cluster


def test_with_the_right_keys_everything_works(acl_cluster):
    config = ProducerConfig(name_server=acl_cluster.name_server, **ADMIN)
    with Admin(config) as admin, Producer(config) as producer, Client(config) as client:
        admin.create_topic("signed", read_queue_nums=1, write_queue_nums=1)
        result = producer.send(Message("signed", b"x"))
        many = producer.send_many([Message("signed", b"y")] * 10)
        admin.await_readable({result.queue: 11}, timeout=PATIENCE)
        blocks = list(client.read_blocks(QueueRange(result.queue, 0, 11)))

    assert len(many) == 10
    assert sum(len(block) for block in blocks) == 11


def test_a_push_consumer_signs_all_it_asks_for(acl_cluster):
    heard = Heard()
    consumer = PushConsumer(
        PushConsumerConfig(
            name_server=acl_cluster.name_server,
            group="signed-consumer",
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            **ADMIN,
        )
    )
    consumer.subscribe("signed-topic", heard)
    with Admin(config := ProducerConfig(name_server=acl_cluster.name_server, **ADMIN)) as admin:
        admin.create_topic("signed-topic", read_queue_nums=1, write_queue_nums=1)
        with consumer, Producer(config) as producer:
            producer.send(Message("signed-topic", b"x"))
            assert heard.wait(1)[0].body == b"x"
        offsets = admin.fetch_consumer_offsets("signed-consumer", "signed-topic")

    assert list(offsets.values()) == [1]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def pem(tmp_path: Path):
    """Write certificates where settings can name them."""

    def write(name: str, *blobs: trustme.Blob) -> str:
        path = tmp_path / name
        path.write_bytes(b"".join(blob.bytes() for blob in blobs))
        return str(path)

    return write


@pytest.fixture
def tls_name_server(local_cluster, authority) -> Iterator[TlsProxy]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with TlsProxy(local_cluster.name_server, context).serving() as proxy:
        yield proxy


def test_a_push_consumer_listens_over_tls(
    local_cluster, tls_name_server, authority, pem, make_topic, producer
):
    topic, heard = make_topic(queues=1), Heard()
    producer.send(Message(topic, b"x"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with ExitStack() as stack:
        proxies = {
            addr: stack.enter_context(TlsProxy(addr, context).serving()).addr
            for addr in local_cluster.broker_addrs.values()
        }
        config = PushConsumerConfig(
            name_server=tls_name_server.addr,
            group="over-tls",
            tls_enable=True,
            tls_ca_file=pem("ca.pem", authority.cert_pem),
            broker_address_map=proxies,
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer = PushConsumer(config)
        consumer.subscribe(topic, heard)
        with consumer:
            assert heard.wait(1)[0].body == b"x"


def test_a_certificate_for_another_host_is_refused_unless_names_are_not_checked(
    local_cluster, authority, pem
):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("elsewhere.invalid").configure_cert(context)
    settings = {"tls_enable": True, "tls_ca_file": pem("ca.pem", authority.cert_pem), "request_timeout": 1.0}
    with TlsProxy(local_cluster.name_server, context).serving() as proxy:
        strict = ClientConfig(name_server=proxy.addr, **settings)
        with Admin(strict) as admin, pytest.raises(RemotingError, match=r"IP address mismatch|doesn't match"):
            admin.fetch_cluster_info()
        with Admin(ClientConfig(name_server=proxy.addr, tls_check_hostname=False, **settings)) as admin:
            assert admin.fetch_cluster_info().broker_addr_table


def test_a_server_that_wants_a_client_certificate_gets_it(local_cluster, authority, pem):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    mine = authority.issue_cert("client.invalid")
    settings = {"tls_enable": True, "tls_ca_file": pem("ca.pem", authority.cert_pem), "request_timeout": 1.0}
    with TlsProxy(local_cluster.name_server, context).serving() as proxy:
        with Admin(ClientConfig(name_server=proxy.addr, **settings)) as admin, pytest.raises(RemotingError):
            admin.fetch_cluster_info()
        with_certificate = ClientConfig(
            name_server=proxy.addr,
            tls_cert_file=pem("client.pem", *mine.cert_chain_pems),
            tls_key_file=pem("client.key", mine.private_key_pem),
            **settings,
        )
        with Admin(with_certificate) as admin:
            assert admin.fetch_cluster_info().broker_addr_table
