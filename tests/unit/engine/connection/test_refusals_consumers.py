"""Consumers whose brokers refuse them for lack of permission: which error comes where."""

import threading
from typing import Any

import pytest

from rmqtools import MessageQueue, PullConsumer, PullConsumerConfig, PushConsumer, PushConsumerConfig
from rmqtools.errors import BrokerError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import MessageQueueAssignment, MessageRequestMode, QueryAssignmentResponseBody
from rmqtools.protocol.wire.body_codec import format_body
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster

REMARK = "User:bob has no permission to access Topic:t from 127.0.0.1, no matched policies."
PATIENCE = 30.0  # seconds


@pytest.fixture
def cluster():
    with FakeCluster(brokers=("broker-a", "broker-b")) as cluster:
        cluster.create_topic("t", queues=1)
        yield cluster


def refuse(cluster, code, *brokers):
    for broker in brokers:
        answer = response(ResponseCode.NO_PERMISSION, 0, REMARK)
        cluster.fault(broker=broker, code=code, times=None, answer=answer)


def make(kind, cluster, error_listener=None, **settings):
    settings |= {"name_server": cluster.name_server, "group": "g"}
    if kind == "push":
        consumer: Any = PushConsumer(PushConsumerConfig(**settings), error_listener=error_listener)
        consumer.subscribe("t", lambda messages, context: None)
    else:
        consumer = PullConsumer(PullConsumerConfig(**settings), error_listener=error_listener)
        consumer.subscribe("t")
    return consumer


@pytest.mark.parametrize("kind", ["push", "pull"])
def test_the_start_raises_if_every_broker_refuses(cluster, kind):
    refuse(cluster, RequestCode.HEART_BEAT, "broker-a", "broker-b")

    with pytest.raises(BrokerError, match=r"User:bob has no permission.*have an administrator allow it"):
        make(kind, cluster).start()


@pytest.mark.parametrize("kind", ["push", "pull"])
@pytest.mark.parametrize(
    "code", [RequestCode.HEART_BEAT, RequestCode.PULL_MESSAGE], ids=lambda code: code.name
)
def test_a_listener_is_told_which_broker_refuses_if_another_does_not(cluster, kind, code):
    told, heard = [], threading.Event()
    refuse(cluster, code, "broker-b")

    with make(kind, cluster, lambda error: (told.append(error), heard.set())):
        assert heard.wait(PATIENCE)

    assert [error.addr for error in told] == [cluster.addr("broker-b")]


@pytest.mark.parametrize(
    "code", [RequestCode.HEART_BEAT, RequestCode.PULL_MESSAGE], ids=lambda code: code.name
)
def test_a_poll_raises_once_which_broker_refuses_and_then_goes_on_with_the_others(cluster, code):
    refuse(cluster, code, "broker-b")

    with make("pull", cluster) as consumer:
        with pytest.raises(BrokerError, match="User:bob has no permission") as caught:
            consumer.poll(timeout=PATIENCE)
        cluster.store("t", b"x")
        messages = consumer.poll(timeout=PATIENCE)

    assert caught.value.addr == cluster.addr("broker-b")
    assert [message.body for message in messages] == [b"x"]


@pytest.mark.process
def test_of_a_group_in_pop_mode_each_new_refusal_is_told(cluster):
    queues = [MessageQueue("t", name, 0) for name in ("broker-a", "broker-b")]
    pop = MessageRequestMode.POP
    shares = tuple(MessageQueueAssignment(message_queue=queue, mode=pop) for queue in queues)
    body = format_body(QueryAssignmentResponseBody(message_queue_assignments=shares))
    cluster.fault(code=RequestCode.QUERY_ASSIGNMENT, times=None, answer=response(0, 0, body=body))
    cluster.fault(code=RequestCode.POP_MESSAGE, broker="broker-a", times=None, answer=None)
    refused = ResponseCode.NO_PERMISSION
    for answer in (refused, refused, ResponseCode.POLLING_TIMEOUT, refused):
        cluster.fault(code=RequestCode.POP_MESSAGE, broker="broker-b", answer=answer)
    cluster.fault(code=RequestCode.POP_MESSAGE, times=None, answer=None)
    told, twice = [], threading.Event()

    def listen(error):
        told.append(error.addr)
        if len(told) == 2:
            twice.set()

    settings = {"client_rebalance": False, "delay_after_error": 0.05}
    with make("push", cluster, listen, **settings):
        assert twice.wait(PATIENCE)

    assert told == [cluster.addr("broker-b")] * 2
