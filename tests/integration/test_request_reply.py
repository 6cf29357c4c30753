"""Requests over topics and their replies, through real brokers; some with the official Java client."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rmqtools import (
    Message,
    MessageExt,
    Producer,
    ProducerConfig,
    ReplyMessage,
    aio,
    create_reply,
)
from rmqtools.errors import RemotingTimeoutError
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE, PATIENT_REQUEST
from tests.support.reading import read_all
from tests.support.threads import in_thread

pytestmark = pytest.mark.broker

Answer = Callable[[MessageExt], ReplyMessage]


def echo(request: MessageExt) -> ReplyMessage:
    return create_reply(request, b"re: " + request.body, tags="t", properties={"a": "1"})


@pytest.fixture
def requests(client, admin):
    """Reads a topic until it holds a number of requests."""

    def read(topic: str, count: int) -> list[MessageExt]:
        while len(found := read_all(client, admin, topic)) < count:
            pass
        return found

    return read


@pytest.fixture
def answering(local_cluster, admin, client):
    """While the block runs, everything that comes to a topic is answered by another producer."""

    @contextmanager
    def run(topic: str, answer: Answer = echo) -> Iterator[list[Any]]:
        over, results = threading.Event(), []

        def serve() -> None:
            config = ProducerConfig(name_server=local_cluster.name_server, group="answerers")
            answered: set[str] = set()
            with Producer(config) as producer:
                while not over.wait(0.01):
                    for request in read_all(client, admin, topic):
                        if request.msg_id not in answered:
                            answered.add(request.msg_id)
                            results.append(producer.send(answer(request)))

        server = in_thread(serve)
        try:
            yield results
        finally:
            over.set()
            server.result(PATIENCE)

    return run


def test_a_new_producers_first_request_needs_no_heartbeat_to_have_come_before(
    local_cluster, make_topic, answering
):
    """On one broker only: the reply may go through the other one, which knows nothing of the topic."""
    topic = make_topic(queues=1, broker_names=["broker-a"])
    config = ProducerConfig(name_server=local_cluster.name_server, group="askers")

    with answering(topic) as replies:
        for n in range(4):
            with Producer(config) as producer:
                assert (
                    producer.request(Message(topic, b"%d" % n), timeout=PATIENT_REQUEST).body == b"re: %d" % n
                )

    assert {len(result.attempts) for result in replies} == {1}
    assert {result.queue.broker_name for result in replies} == {"broker-a", "broker-b"}


def test_each_of_many_requests_gets_its_own_reply(local_cluster, make_topic, answering):
    topic = make_topic()

    async def ask_all() -> list[bytes]:
        config = ProducerConfig(name_server=local_cluster.name_server, group="askers")
        async with aio.Producer(config) as producer:
            asked = [producer.request(Message(topic, b"%d" % n), timeout=PATIENT_REQUEST) for n in range(50)]
            return [reply.body for reply in await asyncio.gather(*asked)]

    with answering(topic):
        assert asyncio.run(ask_all()) == [b"re: %d" % n for n in range(50)]


def test_without_an_answer_the_request_times_out_and_names_the_correlation_id(producer, make_topic, requests):
    topic = make_topic()

    with pytest.raises(RemotingTimeoutError, match=r"no reply to request [0-9a-f-]{36} ") as caught:
        producer.request(Message(topic, b"x"), timeout=0.5)

    (request,) = requests(topic, 1)
    assert request.properties["CORRELATION_ID"] in str(caught.value)
    assert request.properties["REPLY_TO_CLIENT"] == producer.client_id
    assert request.properties["TTL"] == "500"


# with the official Java client


@pytest.mark.slow  # a new group of Java takes 20 s
def test_java_answers_our_request(local_cluster, java_peer, producer, make_topic):
    topic = make_topic()
    answering = in_thread(lambda: java_peer.run("answer", local_cluster.name_server, topic, "1"))

    reply = producer.request(Message(topic, b"question"), timeout=PATIENCE)

    assert reply.body == b"re: question"
    assert answering.result(PATIENCE) == [{"status": "SEND_OK"}]


def test_we_answer_the_request_of_java(local_cluster, java_peer, producer, make_topic, client, admin):
    topic = make_topic()
    asking = in_thread(lambda: java_peer.run("ask", local_cluster.name_server, topic, "question"))
    wait_until(lambda: asking.done() or read_all(client, admin, topic))
    (request,) = read_all(client, admin, topic)

    producer.send(create_reply(request, b"answer"))

    assert asking.result(PATIENCE) == [{"reply": "answer"}]
