"""Consumers whose brokers refuse them for lack of permission: which error comes where."""

import threading

import pytest

from rmqtools import PullConsumer, PullConsumerConfig, PushConsumer, PushConsumerConfig
from rmqtools.errors import BrokerError
from rmqtools.model.codes import RequestCode, ResponseCode
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


def make(kind, cluster, error_listener=None):
    settings = {"name_server": cluster.name_server, "group": "g"}
    if kind == "push":
        consumer = PushConsumer(PushConsumerConfig(**settings), error_listener=error_listener)
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
