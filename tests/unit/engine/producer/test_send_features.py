"""Messages that not every broker has: refused before they are sent."""

import time
from collections.abc import Iterator

import pytest

from rmqtools import Message, Producer, ProducerConfig, ReplyMessage, create_reply
from rmqtools.errors import (
    MessageRejectedError,
    SendError,
    SendManyError,
    UnknownOutcomeError,
    UnsupportedError,
)
from rmqtools.protocol.messages.properties import parse_properties
from rmqtools.testing import FakeCluster, RequestCode
from tests.support.behind_proxy import show_as_proxy, show_version

SEND = RequestCode.SEND_MESSAGE_V2
QUESTION = RequestCode.GET_MIN_OFFSET


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        yield cluster


@pytest.fixture
def producer(cluster: FakeCluster) -> Iterator[Producer]:
    with Producer(ProducerConfig(name_server=cluster.name_server, group="g")) as producer:
        yield producer


@pytest.mark.parametrize(
    ("message", "version", "text"),
    [
        pytest.param(Message("T", b"x", delay=2.0), "4.9.7", "delay.* is 4.9.7; use delay_level", id="delay"),
        pytest.param(Message("T", b"x", deliver_at_ms=2**41), "4.9.7", "is 4.9.7", id="deliver-at"),
        pytest.param(Message("T", b"x", priority=1), "5.3.3", "priority.*since 5.4.0.*5.3.3", id="priority"),
    ],
)
@pytest.mark.parametrize("how", ["send", "send_oneway"])
def test_a_message_that_a_broker_would_store_as_an_ordinary_one_is_refused(
    cluster, producer, message, version, text, how
):
    show_version(cluster, version)

    with pytest.raises(UnsupportedError, match=text):
        getattr(producer, how)(message)

    assert cluster.requests(code=SEND) == []


def test_a_refusal_is_told_of_every_message_of_many(cluster, producer):
    show_version(cluster, "4.9.7")

    with pytest.raises(SendManyError) as caught:
        producer.send_many([Message("T", b"x"), Message("T", b"y", delay=2.0)])

    stored, refused = caught.value.results
    assert not isinstance(stored, SendError)
    assert stored.queue.topic == "T"
    assert "broker-a at" in str(refused)


def test_a_broker_is_asked_for_its_version_once(cluster, producer):
    for _ in range(3):
        producer.send(Message("T", b"x", delay=2.0))

    assert len(cluster.requests(code=QUESTION)) == 1
    assert len(cluster.requests(code=SEND)) == 3


def test_the_question_for_a_version_takes_its_time_from_that_of_the_send(cluster, producer):
    cluster.fault(code=QUESTION, delay=1.0)
    cluster.fault(code=SEND, answer=None)
    (queue, *_) = producer.fetch_publish_queues("T")
    began = time.monotonic()

    with pytest.raises(UnknownOutcomeError):
        producer.send(Message("T", b"x", delay=2.0), queue=queue, timeout=1.5)

    assert 1.4 < time.monotonic() - began < 2.3


def test_a_broker_that_was_upgraded_takes_what_it_did_not_before(cluster, producer):
    show_version(cluster, "4.9.7", times=1)
    with pytest.raises(UnsupportedError):
        producer.send(Message("T", b"x", delay=2.0))

    producer.send(Message("T", b"x", delay=2.0))

    assert len(cluster.requests(code=SEND)) == 1


@pytest.mark.process
def test_a_broker_that_does_not_tell_its_version_gets_nothing(cluster, producer):
    cluster.fault(code=QUESTION, times=None, answer=None)

    with pytest.raises(Exception, match="did not tell its version, so nothing was sent"):
        producer.send(Message("T", b"x", delay=2.0), timeout=0.1)

    assert cluster.requests(code=SEND) == []


def test_delay_levels_and_ordinary_messages_need_no_question(cluster, producer):
    producer.send(Message("T", b"x", delay_level=1))
    producer.send(Message("T", b"x"))

    assert cluster.requests(code=QUESTION) == []


def test_the_priority_is_a_property_and_such_messages_travel_alone(cluster, producer):
    producer.send_many([Message("T", b"%d" % number, priority=number) for number in range(2)])

    sent = [parse_properties(request.ext_fields["i"]) for request in cluster.requests(code=SEND)]
    assert sorted(properties["_SYS_MSG_PRIORITY_"] for properties in sent) == ["0", "1"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        pytest.param({"priority": -1}, "priority=-1: want 0 or more", id="negative"),
        pytest.param({"priority": 1, "delay_level": 1}, "priority=1 and a delay", id="delay"),
        pytest.param({"priority": 1, "sharding_key": "k"}, "priority=1 and a sharding_key", id="key"),
    ],
)
def test_a_priority_that_brokers_would_drop_is_refused(producer, settings, text):
    with pytest.raises(MessageRejectedError, match=text):
        producer.send(Message("T", b"x", **settings))


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        pytest.param([], "no messages", id="none"),
        pytest.param(
            [Message("T", b"x"), Message("U", b"x")], r"one topic, not \['T', 'U'\]", id="two-topics"
        ),
        pytest.param([Message("T", b"x", delay_level=1)], "delay cannot be in a batch", id="delay"),
        pytest.param([Message("T", b"x", priority=1)], "priority cannot be in a batch", id="priority"),
    ],
)
def test_what_cannot_be_a_batch_is_refused(producer, messages, text):
    with pytest.raises(MessageRejectedError, match=text):
        producer.send_batch(messages)


def test_a_reply_goes_into_no_batch(producer):
    reply = ReplyMessage("T", b"x", correlation_id="1", reply_to_client="c")

    for send in (producer.send_batch, producer.send_many):
        with pytest.raises(MessageRejectedError, match="a reply goes out by send"):
            send([reply])


def test_a_message_that_is_no_request_cannot_be_replied_to(cluster):
    (message,) = cluster.store("T", b"x")

    with pytest.raises(MessageRejectedError, match=r"no request: it lacks .*CORRELATION_ID, REPLY_TO_CLIENT"):
        create_reply(message, b"y")


def test_a_request_through_a_proxy_is_refused_and_not_sent(cluster, producer):
    show_as_proxy(cluster)

    with pytest.raises(UnsupportedError, match="requests and replies: not served by the proxy"):
        producer.request(Message("T", b"x"))

    assert cluster.requests(code=SEND) == []


@pytest.mark.parametrize("how", ["send", "send_oneway"])
def test_a_reply_through_a_proxy_is_refused(cluster, producer, how):
    (asked,) = cluster.store("T", b"x")
    properties = {"REPLY_TO_CLIENT": "c", "CORRELATION_ID": "1", "CLUSTER": "DefaultCluster"}
    reply = create_reply(asked.with_values(properties=properties), b"y")
    show_as_proxy(cluster)

    with pytest.raises(UnsupportedError, match="requests and replies"):
        getattr(producer, how)(reply)

    assert cluster.requests(code=RequestCode.SEND_REPLY_MESSAGE_V2) == []
