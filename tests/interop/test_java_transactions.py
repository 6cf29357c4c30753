"""Transactions and requests between the official Java client and ours, on a cluster of this machine."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rmqtools import Admin, Client, ClientConfig, Message, Producer, TransactionProducer, create_reply
from rmqtools.cluster import LocalCluster
from tests.support.cluster_scene import wait_until
from tests.support.reading import read_all
from tests.support.transactions import (
    COMMIT,
    ROLLBACK,
    UNKNOWN,
    Listener,
    cluster_that_asks_soon,
    config_of,
    in_thread,
    says,
)

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cluster_that_asks_soon() as cluster:
        yield cluster


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
def group(topic: str) -> str:
    return f"group-{topic}"


@pytest.fixture
def visible(cluster: LocalCluster, admin: Admin, topic: str) -> Iterator[Callable[[], list[Any]]]:
    with Client(ClientConfig(name_server=cluster.name_server)) as client:
        yield lambda: read_all(client, admin, topic)


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


@pytest.mark.slow  # a new group of Java takes 20 s
def test_java_answers_our_request(cluster, java_peer, topic, group):
    answering = in_thread(lambda: java_peer.run("answer", cluster.name_server, topic, "1"))
    with Producer(config_of(cluster, group)) as producer:
        reply = producer.request(Message(topic, b"question"), timeout=60)

    assert reply.body == b"re: question"
    assert answering.result(60) == [{"status": "SEND_OK"}]


def test_we_answer_the_request_of_java(cluster, java_peer, topic, group, visible):
    asking = in_thread(lambda: java_peer.run("ask", cluster.name_server, topic, "question"))
    wait_until(lambda: asking.done() or visible())
    (request,) = visible()

    with Producer(config_of(cluster, group)) as producer:
        producer.send(create_reply(request, b"answer"))

    assert asking.result(60) == [{"reply": "answer"}]
