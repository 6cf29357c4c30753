"""A master that is lost while its slave is there, and comes back: on the fake cluster and on a real one."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pytest
from typer.testing import CliRunner

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    LocalTransactionState,
    Message,
    MessageQueue,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    QueueRange,
    SimpleConsumer,
    SimpleConsumerConfig,
    TransactionProducer,
)
from rmqtools.cli import app
from rmqtools.cluster import LocalCluster
from rmqtools.errors import RemotingConnectError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.wire.bodies import parse_kv_table
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing import FakeCluster
from rmqtools.testing.fake.state import refused
from tests.behaviour.site import commit, consumer_offset, max_offset, pull, send_header, until
from tests.behaviour.wire import Wire, wire_to
from tests.support.listening import FIRST, Heard, listening
from tests.support.raw_sends import topic_header
from tests.support.resting import RestingCluster

COUNT = 40
SOON: dict[str, Any] = {"poll_name_server_interval": 0.2, "request_timeout": 10.0}
"""Settings of clients that notice a change of the route in a moment, instead of 30 s."""


class Replicated(Protocol):
    """A master with a slave."""

    name_server: str
    master: str
    slave: str
    is_lost: bool

    def lose_master(self) -> None:
        """End it, as a crash would."""

    def start_master(self) -> None:
        """Start it again, with what it had."""

    def refusing_reads(self) -> Any:
        """Let the slave refuse pulls in a block, as slaves do by default."""


@dataclass
class OnFake:
    cluster: FakeCluster
    is_lost: bool = False

    def __post_init__(self) -> None:
        self.name_server = self.cluster.name_server
        self.master, self.slave = self.cluster.addr("broker-a"), self.cluster.addr("broker-a/1")

    def lose_master(self) -> None:
        self.cluster.stop("broker-a", in_route=False)
        self.is_lost = True

    def start_master(self) -> None:
        self.cluster.restart("broker-a")
        self.is_lost = False

    @contextmanager
    def refusing_reads(self) -> Iterator[None]:
        busy = refused(ResponseCode.SYSTEM_BUSY, "[REJECTREQUEST]system busy, start flow control for a while")
        fault = self.cluster.fault(
            code=RequestCode.PULL_MESSAGE, broker="broker-a/1", times=None, answer=busy
        )
        yield
        fault.times = 0


@dataclass
class OnReal:
    cluster: LocalCluster
    is_lost: bool = False

    def __post_init__(self) -> None:
        self.name_server = self.cluster.name_server
        self.master, self.slave = (server.address for server in self.cluster.servers[1:])

    def lose_master(self) -> None:
        self.cluster.kill_server("broker-a")
        self.is_lost = True

    def start_master(self) -> None:
        self.cluster.start_server("broker-a")
        self.is_lost = False

    @contextmanager
    def refusing_reads(self) -> Iterator[None]:
        with Admin(ClientConfig(name_server=self.name_server)) as admin:
            admin.update_broker_config(self.slave, {"slaveReadEnable": "false"})
            yield
            admin.update_broker_config(self.slave, {"slaveReadEnable": "true"})


@pytest.fixture(scope="module", params=["fake", pytest.param("real", marks=pytest.mark.broker)])
def site(request: pytest.FixtureRequest) -> Iterator[Replicated]:
    with ExitStack() as stack:
        if request.param == "fake":
            yield OnFake(stack.enter_context(FakeCluster(slaves=1)))
        else:
            yield OnReal(stack.enter_context(RestingCluster(slaves=1)))


@pytest.fixture
def master(whole: Replicated) -> Iterator[Wire]:
    with wire_to(whole.master) as wire:
        yield wire


@pytest.fixture
def slave(site: Replicated) -> Iterator[Wire]:
    with wire_to(site.slave) as wire:
        yield wire


@pytest.fixture
def producer(site: Replicated) -> Iterator[Producer]:
    with Producer(ProducerConfig(name_server=site.name_server, group="tests", **SOON)) as producer:
        yield producer


@dataclass
class Stored:
    """A topic of one queue with messages, which the slave has, too."""

    site: Replicated
    topic: str

    @property
    def queue(self) -> MessageQueue:
        return MessageQueue(self.topic, "broker-a", 0)

    @property
    def bodies(self) -> list[bytes]:
        return [b"%d" % number for number in range(COUNT)]


def stored(site: Replicated) -> Stored:
    """Make the topic on both servers: a real slave would take it over within a minute only."""
    topic = f"test-{uuid.uuid4().hex[:12]}"
    settings = ClientConfig(name_server=site.name_server, **SOON)
    with wire_to(site.slave) as slave, Admin(settings) as admin:
        admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
        assert slave.ask(topic_header(topic)).code == ResponseCode.SUCCESS
        made = Stored(site, topic)
        with Producer(ProducerConfig(name_server=site.name_server, group="tests", **SOON)) as producer:
            for body in made.bodies:
                producer.send(Message(topic, body), queue=made.queue, timeout=30.0)
        until(lambda: max_offset(slave, topic) == COUNT)
    return made


@contextmanager
def member(of: Stored, group: str, **settings: Any) -> Iterator[Heard]:
    """A push consumer of the topic."""
    heard, given = Heard(), SOON | {"group": group, "persist_consumer_offset_interval": 0.2} | settings
    with listening(of.site.name_server, of.topic, heard, **given):
        yield heard


@contextmanager
def reader(of: Stored, group: str) -> Iterator[PullConsumer]:
    """A pull consumer of the topic, which commits only when it is told to."""
    config = PullConsumerConfig(
        name_server=of.site.name_server,
        group=group,
        consume_from=FIRST,
        auto_commit=False,
        persist_consumer_offset_interval=0.2,
        **SOON,
    )
    with PullConsumer(config) as consumer:
        consumer.assign([of.queue])
        yield consumer


def polled(consumer: PullConsumer) -> list[bytes]:
    """Every message of the topic."""
    found: list[bytes] = []
    while len(found) < COUNT:
        found += [message.body for message in consumer.poll(1.0)]
    return found


def committed(wire: Wire, of: Stored, *groups: str) -> list[int]:
    """The offsets of groups that a server has; 0: none."""
    answers = [consumer_offset(wire, group, of.topic) for group in groups]
    return [int((answer.ext_fields or {}).get("offset") or 0) for answer in answers]


@pytest.fixture
def whole(site: Replicated) -> Replicated:
    """Master and slave."""
    if site.is_lost:
        site.start_master()
    return site


@pytest.fixture(scope="module")
def kept(site: Replicated) -> Stored:
    """A topic that both have."""
    return stored(site)


@pytest.fixture
def alone(site: Replicated, kept: Stored) -> Stored:
    """The topic, of which only the slave is there."""
    if not site.is_lost:
        site.lose_master()
    return kept


# a slave that is well


def is_told(wire: Wire, question: RemotingCommand) -> bool:
    """Whether a broker tells its statistics: it has none in its first second."""
    return wire.ask(question).code == ResponseCode.SUCCESS


def test_a_slave_that_is_well_says_that_it_is_not_active_and_health_knows_that(site, master, slave):
    question = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
    for wire in (master, slave):
        until(partial(is_told, wire, question))
    said = [parse_kv_table(wire.ask(question).body)["brokerActive"] for wire in (master, slave)]
    health = CliRunner().invoke(app, ["health", "-n", site.name_server, "--timeout", "60"])

    assert said == ["true", "false"]
    assert (health.exit_code, health.stdout) == (0, "healthy: 2 brokers, 1 master\n")


def test_a_slave_takes_no_message(whole, slave):
    made = stored(whole)

    answer = slave.ask(send_header(made.topic), b"not for you")

    assert (answer.code, "REJECTREQUEST" in answer.remark) == (ResponseCode.SYSTEM_BUSY, True)
    assert max_offset(slave, made.topic) == COUNT


# while only the slave is there


def test_a_range_is_read_from_the_slave_without_a_gap(alone):
    with Client(ClientConfig(name_server=alone.site.name_server, **SOON)) as client:
        found = [
            message.body
            for messages in client.read_messages(QueueRange(alone.queue, 0, COUNT))
            for message in messages
        ]

    assert found == alone.bodies


def test_a_new_member_gets_every_message_once_from_the_slave(alone, group):
    with member(alone, group) as heard:
        until(lambda: len(heard.bodies) >= COUNT)

    assert sorted(heard.bodies, key=int) == alone.bodies
    with wire_to(alone.site.slave) as slave:
        assert committed(slave, alone, group) == [COUNT]


def test_a_pull_consumer_reads_from_the_slave_and_commits_to_it(alone, group):
    with reader(alone, group) as consumer:
        found = polled(consumer)
        consumer.commit()
        known = consumer.committed(alone.queue)

    with wire_to(alone.site.slave) as slave:
        assert committed(slave, alone, group) == [COUNT]
    assert (found, known) == (alone.bodies, COUNT)


def test_an_orderly_member_gets_nothing_because_only_masters_lock_queues(alone, group, caplog):
    with member(alone, group, orderly=True) as heard:
        until(lambda: "lock_failed" in caplog.text)
        threading.Event().wait(0.5)

    assert heard.bodies == []
    assert "broker 'broker-a' has no master in the route" in caplog.text


def test_a_send_fails_at_once_and_nothing_was_sent(alone, producer):
    with pytest.raises(RemotingConnectError, match="start the master of broker-a, or wait") as caught:
        producer.send(Message(alone.topic, b"for nobody"))

    assert caught.value.retriable
    with wire_to(alone.site.slave) as slave:
        assert max_offset(slave, alone.topic) == COUNT


def test_a_transaction_fails_before_its_local_part_runs(alone):
    ran: list[Message] = []

    class Listener:
        def execute_local_transaction(self, message: Message, arg: Any) -> LocalTransactionState:
            ran.append(message)
            return LocalTransactionState.COMMIT_MESSAGE

        def check_local_transaction(self, message: Any) -> LocalTransactionState:
            return LocalTransactionState.COMMIT_MESSAGE

    config = ProducerConfig(name_server=alone.site.name_server, group="transactions", **SOON)
    with TransactionProducer(config, Listener()) as producer, pytest.raises(RemotingConnectError):
        producer.send_message_in_transaction(Message(alone.topic, b"for nobody"))
    assert ran == []


def test_single_messages_are_not_received_and_the_error_names_the_broker(alone, group):
    config = SimpleConsumerConfig(name_server=alone.site.name_server, group=group, **SOON)
    consumer = SimpleConsumer(config)
    consumer.subscribe(alone.topic)
    with consumer, pytest.raises(RemotingConnectError, match="'broker-a' has no master in the route"):
        consumer.receive(wait=1.0)


def test_health_names_the_broker_without_a_master_once(alone):
    health = CliRunner().invoke(app, ["health", "-n", alone.site.name_server, "--timeout", "60"])

    assert health.exit_code == 1
    assert health.stdout == (
        "unhealthy: broker-a (slave 1): has no master: the broker takes no messages; "
        "0 masters answer, want 1\n"
    )


def test_a_group_is_looked_at_through_the_slave(alone, group):
    settings = ClientConfig(name_server=alone.site.name_server, **SOON)
    with member(alone, group) as heard, Admin(settings, partial=True) as admin:
        until(lambda: len(heard.bodies) >= COUNT)
        until(lambda: group in admin.fetch_group_list())
        until(lambda: admin.fetch_consume_stats(group, alone.topic).offset_table[alone.queue].consumer_offset)
        view = admin.fetch_group(group)

    assert (len(view.members), view.progress[alone.queue].consumer_offset) == (1, COUNT)
    assert view.silent_brokers == {}


def test_the_end_of_a_queue_is_its_masters_and_not_asked_of_the_slave(alone):
    settings = {**SOON, "request_timeout": 0.5}
    with Admin(ClientConfig(name_server=alone.site.name_server, **settings)) as admin:
        stats = admin.fetch_topic_stats(alone.topic)
        with pytest.raises(RemotingConnectError, match="'broker-a' has no master in the route"):
            admin.max_offset(alone.queue)

    assert stats.offset_table[alone.queue].max_offset == COUNT


# when the master is back


def test_what_a_slave_got_meanwhile_does_not_come_to_its_master(whole, master, group):
    made = stored(whole)
    with wire_to(whole.slave) as slave:
        for wire, offset in ((master, 3), (slave, 30)):
            pull(wire, made.topic, group=group)  # makes the group
            assert commit(wire, group, made.topic, offset).code == ResponseCode.SUCCESS
    whole.lose_master()
    whole.start_master()

    with wire_to(whole.master) as again:
        assert committed(again, made, group)[0] < 30


def test_members_commit_again_to_the_master_what_only_the_slave_has(whole, group):
    made, pulling = stored(whole), f"{group}-pull"
    whole.lose_master()
    with member(made, group) as heard, reader(made, pulling) as consumer:
        until(lambda: len(heard.bodies) >= COUNT)
        found = polled(consumer)
        consumer.commit()
        with wire_to(whole.slave) as slave:
            until(lambda: committed(slave, made, group, pulling) == [COUNT, COUNT])
        whole.start_master()
        with wire_to(whole.master) as master:
            until(lambda: committed(master, made, group, pulling) == [COUNT, COUNT])

    assert (sorted(heard.bodies, key=int), found) == (made.bodies, made.bodies)


def test_members_of_every_kind_go_on_with_the_master_although_the_slave_has_refused_them(
    whole, group, caplog
):
    made = stored(whole)
    names = [f"{group}-{kind}" for kind in ("push", "orderly")]
    with (
        whole.refusing_reads(),
        member(made, names[0], delay_after_error=0.2) as pushed,
        member(made, names[1], delay_after_error=0.2, orderly=True) as in_order,
    ):
        until(lambda: min(len(pushed.bodies), len(in_order.bodies)) >= COUNT)
        whole.lose_master()
        until(lambda: "REJECTREQUEST" in caplog.text)
        whole.start_master()
        with Producer(ProducerConfig(name_server=whole.name_server, group="tests", **SOON)) as producer:
            producer.send(Message(made.topic, b"more"), timeout=30.0)
        until(lambda: b"more" in pushed.bodies and b"more" in in_order.bodies)

    assert in_order.bodies == [*made.bodies, b"more"]
    assert sorted(pushed.bodies[:COUNT], key=int) == made.bodies
