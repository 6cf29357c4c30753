"""Transactions on real brokers that ask back after a second; some with members of Java."""

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    LocalTransactionState,
    Message,
    MessageExt,
    ProducerConfig,
    TransactionProducer,
)
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster import LocalCluster
from rmqtools.cluster.processes import find_processes
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE
from tests.support.reading import read_all
from tests.support.resting import RestingCluster
from tests.support.threads import in_thread
from tests.support.transactions import COMMIT, ROLLBACK, UNKNOWN, Listener, says

pytestmark = pytest.mark.broker


SOON = {  # a broker asks every second about half messages of half a second, for more than a minute
    "transactionCheckInterval": "1000",
    "transactionTimeOut": "500",
    "transactionCheckMax": "100",  # after 15, the default, it gives up: too soon on a busy machine
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with RestingCluster(brokers=2, broker_settings=SOON) as cluster:
        yield cluster


def config_of(cluster: LocalCluster, group: str) -> ProducerConfig:
    return ProducerConfig(name_server=cluster.name_server, group=group)


@pytest.fixture(scope="module")
def admin(cluster: LocalCluster) -> Iterator[Admin]:
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin) -> str:
    topic = f"test-{uuid.uuid4().hex[:12]}"
    admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
    return topic


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def visible(cluster: LocalCluster, admin: Admin, topic: str) -> Iterator[Callable[[], list[Any]]]:
    """The messages of the topic that consumers can see now."""
    with Client(ClientConfig(name_server=cluster.name_server)) as client:
        yield lambda: read_all(client, admin, topic)


def stays(visible: Callable[[], list[Any]], bodies: list[bytes]) -> None:
    """The messages come, and two rounds of check-backs bring nothing more."""
    wait_until(lambda: len(visible()) >= len(bodies))
    until = SYSTEM_CLOCK.monotonic() + 2.5
    while SYSTEM_CLOCK.monotonic() < until:
        assert sorted(message.body for message in visible()) == bodies


def test_brokers_rest_when_the_last_transaction_is_over(cluster, topic, group, visible):
    """Brokers 5.5.0 with their default settings spin one core from 3 s after their last transaction on."""
    with TransactionProducer(config_of(cluster, group), Listener(decide=lambda *_: COMMIT)) as producer:
        producer.send_message_in_transaction(Message(topic, b"x"))
    stays(visible, [b"x"])
    time.sleep(1)  # with the check before: more than 3 s

    before = cpu_seconds(cluster)
    time.sleep(1)

    assert cpu_seconds(cluster) - before < 0.5


def cpu_seconds(cluster: LocalCluster) -> float:
    """What all servers of a cluster have used of the processors until now."""
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in find_processes(cluster.directory)]
    ticks = [sum(map(int, stat.rpartition(")")[2].split()[11:13])) for stat in stats]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def test_the_local_transaction_knows_the_id_and_runs_on_the_callers_thread(cluster, topic, group):
    listener = Listener(decide=lambda message, arg: COMMIT)
    with TransactionProducer(config_of(cluster, group), listener) as producer:
        message = Message(topic, b"x", tags="t")
        sent = in_thread(lambda: producer.send_message_in_transaction(message, "arg"), name="sender")
        result = sent.result(PATIENCE)

    ((half, arg, thread),) = listener.executed
    assert (half.transaction_id, half.body, half.tags, arg) == (result.msg_id, b"x", "t", "arg")
    assert thread == "sender"
    assert result.transaction_id == result.msg_id


@pytest.mark.parametrize(
    ("decide", "error"),
    [
        pytest.param(lambda message, arg: UNKNOWN, "None", id="unknown"),
        pytest.param(lambda message, arg: None, "returned None", id="returns-nothing"),
    ],
)
def test_what_the_local_transaction_leaves_open_is_decided_by_a_check_off_the_loop(
    cluster, topic, group, visible, decide, error
):
    seen, body = threading.Event(), bytes(10_000)  # compressed

    def commit_once_seen(message: MessageExt) -> LocalTransactionState:
        assert seen.wait(PATIENCE)
        return COMMIT

    listener = Listener(decide=decide, checks=[commit_once_seen])
    with TransactionProducer(config_of(cluster, group), listener) as producer:
        result = producer.send_message_in_transaction(Message(topic, body, keys="k"))
        assert visible() == []
        seen.set()
        stays(visible, [body])

    assert result.local_transaction_state is UNKNOWN
    assert error in str(result.local_transaction_error)
    ((checked, thread),) = listener.checked
    assert (checked.msg_id, checked.topic, checked.body) == (result.msg_id, topic, body)
    assert thread.startswith("rmqtools-transaction-check")


PROGRAM = """
import sys, threading
from rmqtools import Message, ProducerConfig, TransactionProducer
class Listener:
    def execute_local_transaction(self, message, arg):
        print(message.transaction_id, flush=True)
        threading.Event().wait()  # killed here
    def check_local_transaction(self, message):
        threading.Event().wait()
name_server, group, topic = sys.argv[1:]
with TransactionProducer(ProducerConfig(name_server=name_server, group=group), Listener()) as producer:
    producer.send_message_in_transaction(Message(topic, b"orphan"))
"""


def killed_between_half_message_and_end(cluster: LocalCluster, group: str, topic: str) -> str:
    """The transaction id that the killed process began."""
    command = [sys.executable, "-c", PROGRAM, cluster.name_server, group, topic]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        transaction_id = process.stdout.readline().strip()
        process.kill()
    assert transaction_id
    return transaction_id


def test_after_kill_9_another_member_decides(cluster, topic, group, visible):
    listener = Listener(checks=[says(COMMIT)])
    with TransactionProducer(config_of(cluster, group), listener):
        transaction_id = killed_between_half_message_and_end(cluster, group, topic)
        wait_until(lambda: len(visible()) == 1)

    assert [message.msg_id for message in visible()] == [transaction_id]
    assert {message.msg_id for message, _ in listener.checked} == {transaction_id}


def test_a_producer_started_later_is_asked_though_it_sends_nothing(cluster, topic, group, visible):
    transaction_id = killed_between_half_message_and_end(cluster, group, topic)
    listener = Listener(checks=[says(COMMIT)])

    with TransactionProducer(config_of(cluster, group), listener):
        wait_until(lambda: len(visible()) == 1)

    assert [message.msg_id for message in visible()] == [transaction_id]


def test_in_a_namespace_the_listener_sees_the_topic_as_it_was_sent(cluster, admin, group):
    bare = f"t-{group}"
    admin.create_topic(f"ns%{bare}", read_queue_nums=1, write_queue_nums=1)
    settings = replace(config_of(cluster, group), namespace="ns")
    listener = Listener(checks=[says(COMMIT)])
    with (
        TransactionProducer(settings, listener) as producer,
        Client(ClientConfig(name_server=cluster.name_server)) as client,
    ):
        producer.send_message_in_transaction(Message(bare, b"x"))
        wait_until(lambda: len(read_all(client, admin, f"ns%{bare}")) == 1)

    assert [message.topic for message, _ in listener.checked] == [bare]


# with the official Java client


def test_java_reads_only_what_our_transactions_committed(cluster, java_peer, topic, group):
    listener = Listener(decide=lambda message, arg: arg, checks=[says(COMMIT)])
    with TransactionProducer(config_of(cluster, group), listener) as producer:
        sent = [
            producer.send_message_in_transaction(Message(topic, state.value.encode()), state)
            for state in (COMMIT, ROLLBACK, UNKNOWN)
        ]
        wait_until(lambda: listener.checked)
    wanted = {(sent[0].msg_id, b"COMMIT_MESSAGE".hex()), (sent[2].msg_id, b"UNKNOW".hex())}

    dumped = java_peer.dump(cluster.name_server, topic)

    assert {(row["msgId"], row["body"]) for row in dumped} == wanted
    assert len(dumped) == 2


def test_our_member_answers_the_check_backs_of_a_java_producer(cluster, java_peer, topic, group, visible):
    # brokers note decisions seconds late, and may ask us about what the Java member has rolled back
    listener = Listener(checks=[lambda message: COMMIT if message.body == b"java" else ROLLBACK])
    lines = [{"body": b"java".hex(), "state": "UNKNOW"}, {"body": b"no".hex(), "state": "ROLLBACK_MESSAGE"}]
    with TransactionProducer(config_of(cluster, group), listener):
        printed = java_peer.run("transact", cluster.name_server, group, topic, "UNKNOW", "0", lines=lines)
        wait_until(visible)

    transaction_id = printed[0]["sent"]
    assert (transaction_id, topic) in {(message.msg_id, message.topic) for message, _ in listener.checked}
    # a set: brokers may store what is committed a second time (see engine.producer.check_back)
    assert {(message.msg_id, message.body) for message in visible()} == {(transaction_id, b"java")}


def test_a_java_member_answers_the_check_backs_of_our_producer(cluster, java_peer, topic, group, visible):
    with TransactionProducer(config_of(cluster, group), Listener(checks=[says(UNKNOWN)])) as producer:
        result = producer.send_message_in_transaction(Message(topic, b"ours"))
        printed = java_peer.run("transact", cluster.name_server, group, topic, "COMMIT_MESSAGE", "1")
        wait_until(lambda: len(visible()) == 1)

    assert {"checked": result.msg_id, "topic": topic} in printed
    assert [message.msg_id for message in visible()] == [result.msg_id]
