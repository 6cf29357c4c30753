"""TLS and access control on real servers: each mistake, the text of its error, and how soon it comes."""

import json
import re
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    Message,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    QueueRange,
)
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster import ClusterSecurity, LocalCluster
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import BrokerError, RocketMQError
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.sync.loop import Bridge
from tests.support import patience
from tests.support.listening import Heard, listening
from tests.support.relay import TlsProxy
from tests.support.resting import RestingCluster
from tools.measure.faults.fault_proxy import FaultProxy

pytestmark = pytest.mark.broker

PATIENCE = 1.0  # seconds until an error must be there; one of several tries must keep it
TRIES = range(3, 21)  # more only while a busy machine is too slow
MOST_CONNECTS = 3  # for one call: no storm
TOPIC = "guarded"


@pytest.fixture(scope="module")
def secured() -> Iterator[LocalCluster]:
    """TLS with certificates of clients, ACL 2.0; the user bob may do nothing."""
    with RestingCluster(security=ClusterSecurity(client_certificates=True)) as cluster:
        with Admin(ClientConfig.from_mapping(texts(cluster.client_settings))) as admin:
            admin.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)
        Bridge().run(lambda: create_bob(cluster))
        yield cluster


def texts(settings: dict[str, Any]) -> dict[str, str]:
    return {
        name: getattr(value, "reveal", lambda value=value: str(value))() for name, value in settings.items()
    }


async def create_bob(cluster: LocalCluster) -> None:
    client = ClientCore(ClientConfig.from_mapping(texts(cluster.client_settings)))
    body = json.dumps(
        {"username": "bob", "password": "bobs-key", "userType": "Normal", "userStatus": "enable"}
    )
    for addr in cluster.broker_addrs.values():
        command = RemotingCommand(
            RequestCode.AUTH_CREATE_USER, ext_fields={"username": "bob"}, body=body.encode()
        )
        await client.remoting.invoke_ok(addr, command)
    await client.close()


@pytest.fixture(scope="module")
def files(secured: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Certificates that are wrong in one way each."""
    folder, given = tmp_path_factory.mktemp("certificates"), secured.directory / "secure"
    authority = trustme.CA.from_pem((given / "ca.pem").read_bytes(), (given / "ca.key").read_bytes())
    foreign = trustme.CA()
    past = datetime(2020, 1, 1, tzinfo=UTC)

    def write(name: str, *texts: bytes) -> str:
        path = folder / name
        path.write_bytes(b"".join(texts))
        return str(path)

    def pair(name: str, made: trustme.LeafCert) -> dict[str, str]:
        chain = [blob.bytes() for blob in made.cert_chain_pems]
        return {
            "tls_cert_file": write(f"{name}.pem", *chain),
            "tls_key_file": write(f"{name}.key", made.private_key_pem.bytes()),
        }

    good = authority.issue_cert("client.invalid")
    key = load_pem_private_key(good.private_key_pem.bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open sesame"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", not_before=past, not_after=past.replace(year=2021)).configure_cert(
        context
    )
    return SimpleNamespace(
        other_ca=write("other.pem", foreign.cert_pem.bytes()),
        foreign=pair("foreign", foreign.issue_cert("client.invalid")),
        expired=pair(
            "expired",
            authority.issue_cert("client.invalid", not_before=past, not_after=past.replace(year=2021)),
        ),
        locked=pair("locked", good) | {"tls_key_file": write("locked.key", locked)},
        expired_server=context,
    )


def without(settings: dict[str, Any], *prefixes: str) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if not name.startswith(prefixes)}


CASES: dict[str, tuple[Callable[[dict[str, Any], SimpleNamespace], dict[str, Any]], str]] = {
    "wrong authority": (
        lambda good, files: good | {"tls_ca_file": files.other_ca},
        r"cannot connect to 127.*certificate verify failed: unable to get local issuer.*set tls_ca_file",
    ),
    "wrong host": (
        lambda good, _: good | {"name_server": good["name_server"].replace("127.0.0.1", "127.1")},
        r"cannot connect to 127\.1.*for another host.*connect by its name, or set tls_check_hostname=False",
    ),
    "plain client at a TLS port": (
        lambda good, _: without(good, "tls_"),
        r"closed by the peer before it sent a byte; if it accepts nothing but TLS: set tls_enable=True",
    ),
    "no client certificate": (
        lambda good, _: without(good, "tls_cert", "tls_key"),
        r"the server needs a client certificate.*: set tls_cert_file and tls_key_file to a certificate that",
    ),
    "a foreign client certificate": (
        lambda good, files: good | files.foreign,
        r"does not accept this client's certificate: set tls_cert_file",
    ),
    "an expired client certificate": (
        lambda good, files: good | files.expired,
        r"does not accept this client's certificate: set .* to one that is valid now",
    ),
    "an encrypted key without password": (
        lambda good, files: good | files.locked,
        r"the key in '.*locked\.key' is encrypted: set tls_key_password",
    ),
    "an encrypted key with a wrong password": (
        lambda good, files: good | files.locked | {"tls_key_password": "wr0ng"},
        r"locked\.key'\] cannot be used: .*does tls_key_password open the key",
    ),
    "no TLS in spite of its settings": (
        lambda good, _: without(good, "tls_enable"),
        r"tls_ca_file, tls_cert_file, tls_key_file without tls_enable: connections would be in plain text",
    ),
    "no keys": (
        lambda good, _: without(good, "access", "secret"),
        r"NO_PERMISSION \(16\): .*username cannot be null.*set access_key and secret_key",
    ),
    "a wrong secret": (
        lambda good, _: good | {"secret_key": "wr0ng"},
        r"NO_PERMISSION \(16\): .*check signature failed.*the secret_key does not belong to this access_key",
    ),
    "an unknown user": (
        lambda good, _: good | {"access_key": "nobody", "secret_key": "wr0ng"},
        r"NO_PERMISSION \(16\): .*User:nobody is not found.*correct it, or have the user created",
    ),
    "a user without permission": (
        lambda good, _: good | {"access_key": "bob", "secret_key": "bobs-key"},
        r"NO_PERMISSION \(16\): .*User:bob has no permission.*have an administrator allow it",
    ),
}


def failing_send(settings: dict[str, Any]) -> tuple[str, float]:
    """The error of a send, and the seconds until it came."""
    began, ended = SYSTEM_CLOCK.monotonic(), 0.0
    try:
        with Producer(ProducerConfig(**settings)) as producer:
            try:
                producer.send(Message(TOPIC, b"x"))
            finally:
                ended = SYSTEM_CLOCK.monotonic()
    except RocketMQError as error:
        return str(error), (ended or SYSTEM_CLOCK.monotonic()) - began
    pytest.fail("the message was sent")


def soonest(tries: list[tuple[str, float]]) -> float:
    return min(seconds for _, seconds in tries)


def check(case: str, pattern: str, settings: dict[str, Any]) -> None:
    """Fail several times: the same text, one of them soon, and few connections for each."""
    host, _, port = settings["name_server"].rpartition(":")
    bridge, counter = Bridge(), FaultProxy(f"127.0.0.1:{port}")
    bridge.submit(counter.__aenter__).result(patience.PATIENCE)
    try:
        behind = settings | {"name_server": f"{host}:{counter.addr.rpartition(':')[2]}"}
        tries = list[tuple[str, float]]()
        while len(tries) < TRIES.start or (len(tries) < TRIES.stop and soonest(tries) > PATIENCE):
            tries.append(failing_send(behind))
    finally:
        bridge.submit(lambda: counter.__aexit__(None, None, None)).result(patience.PATIENCE)
    seconds = soonest(tries)
    print(f"| {case} | {tries[0][0]} | {seconds:.3f} |")
    for shown, _ in tries:
        assert re.search(pattern, shown, re.DOTALL), shown
        assert "wr0ng" not in shown
    assert seconds <= PATIENCE
    assert counter.connects <= MOST_CONNECTS * len(tries)


@pytest.mark.parametrize("case", CASES)
def test_each_mistake_is_named_with_its_remedy_within_a_second(secured, files, case):
    change, pattern = CASES[case]

    check(case, pattern, change(dict(secured.client_settings), files))


def test_a_tls_client_at_a_plain_port_is_told_so(local_cluster):
    settings = {"name_server": local_cluster.name_server, "tls_enable": True}

    check(
        "TLS client at a plain port",
        r"cannot connect to 127.* TLS handshake failed: .*does not seem to speak TLS: leave out tls_enable",
        settings,
    )


def test_an_expired_certificate_of_the_server_is_named(secured, files, local_cluster):
    with TlsProxy(local_cluster.name_server, files.expired_server).serving() as proxy:
        check(
            "an expired certificate of the server",
            r"certificate verify failed: certificate has expired; .*must be renewed on the server",
            dict(secured.client_settings) | {"name_server": proxy.addr},
        )


def test_the_right_settings_work_also_with_an_encrypted_key(secured, files):
    settings = dict(secured.client_settings) | files.locked | {"tls_key_password": "open sesame"}

    with Producer(ProducerConfig(**settings)) as producer:
        assert producer.send(Message(TOPIC, b"x")).queue_offset >= 0


def test_with_the_right_settings_messages_are_sent_in_batches_and_read(secured):
    config = ProducerConfig(**secured.client_settings)
    with Admin(config) as admin, Producer(config) as producer, Client(config) as client:
        admin.create_topic("many", read_queue_nums=1, write_queue_nums=1)
        result = producer.send(Message("many", b"x"))
        many = producer.send_many([Message("many", b"y")] * 10)
        admin.await_readable({result.queue: 11}, timeout=patience.PATIENCE)
        blocks = list(client.read_blocks(QueueRange(result.queue, 0, 11)))

    assert len(many) == 10
    assert sum(len(block) for block in blocks) == 11


def test_a_push_consumer_signs_all_it_asks_for(secured):
    heard, config = Heard(), ProducerConfig(**secured.client_settings)
    settings = secured.client_settings | {"group": "signed-consumer"}
    with Admin(config) as admin:
        admin.create_topic("signed", read_queue_nums=1, write_queue_nums=1)
        with listening(topic="signed", listener=heard, **settings), Producer(config) as producer:
            producer.send(Message("signed", b"x"))
            assert heard.wait(1)[0].body == b"x"
        offsets = admin.fetch_consumer_offsets("signed-consumer", "signed")

    assert list(offsets.values()) == [1]


@pytest.mark.parametrize("kind", ["push", "pull"])
def test_a_consumer_that_no_broker_lets_in_raises_from_start(secured, kind):
    settings = dict(secured.client_settings) | {"access_key": "bob", "secret_key": "bobs-key", "group": "g"}
    consumer: PushConsumer | PullConsumer
    if kind == "push":
        consumer = PushConsumer(PushConsumerConfig(**settings))
        consumer.subscribe(TOPIC, lambda messages, context: None)
    else:
        consumer = PullConsumer(PullConsumerConfig(**settings))
        consumer.subscribe(TOPIC)

    with pytest.raises(BrokerError, match=r"User:bob has no permission.*have an administrator allow it"):
        consumer.start()


def test_a_secured_cluster_opens_nothing_to_other_machines(secured):
    assert secured.exposed_ports == []
