"""Brokers that refuse for lack of permission: which refusals are reported, and which error comes where."""

from typing import Any

import pytest

from rmqtools import MessageQueue, PullConsumer, PullConsumerConfig, PushConsumer, PushConsumerConfig
from rmqtools.engine.connection.refusals import FETCH, HEARTBEAT, Refusals
from rmqtools.errors import BrokerError, RemotingTimeoutError
from rmqtools.model.group import MessageQueueAssignment, MessageRequestMode, QueryAssignmentResponseBody
from rmqtools.protocol.wire.body_codec import format_body
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster, RequestCode, ResponseCode
from tests.support.cluster_scene import wait_until

REMARK = "User:bob has no permission to access Topic:t from 127.0.0.1, no matched policies."
REFUSED = BrokerError(ResponseCode.NO_PERMISSION, REMARK, "10.0.0.1:10911")
PATIENCE = 30.0  # seconds


@pytest.fixture
def told():
    return []


@pytest.fixture
def refusals(told):
    refusals = Refusals()
    refusals.listen(told.append)
    return refusals


def test_a_refusal_is_told_once_until_the_broker_accepts_again(refusals, told):
    for _ in range(3):
        refusals.note(FETCH, "broker-a", REFUSED)
    refusals.accepted(FETCH, "broker-a")
    refusals.note(FETCH, "broker-a", REFUSED)

    assert told == [REFUSED, REFUSED]
    assert [refusals.take() for _ in range(3)] == [REFUSED, REFUSED, None]


def test_heartbeats_that_are_accepted_do_not_hide_that_pulls_are_refused(refusals, told):
    refusals.note(FETCH, "broker-a", REFUSED)
    refusals.accepted(HEARTBEAT, "broker-a")
    refusals.note(FETCH, "broker-a", REFUSED)

    assert told == [REFUSED]


@pytest.mark.parametrize(
    "error", [RemotingTimeoutError("late"), BrokerError(ResponseCode.SYSTEM_BUSY, "", "a:1")], ids=type
)
def test_other_errors_are_no_refusals(refusals, told, error):
    refusals.note(FETCH, "broker-a", error)

    assert (told, refusals.take()) == ([], None)


def test_all_brokers_refuse_only_if_each_does_and_there_is_one(refusals):
    refusals.note(HEARTBEAT, "broker-a", REFUSED)

    assert refusals.of_all(HEARTBEAT, ["broker-a"]) is REFUSED
    assert refusals.of_all(HEARTBEAT, ["broker-a", "broker-b"]) is None
    assert refusals.of_all(HEARTBEAT, []) is None


def test_a_listener_that_fails_does_not_end_the_consumer(refusals, caplog):
    refusals.listen(lambda error: 1 / 0)
    refusals.note(FETCH, "broker-a", REFUSED)

    assert "error_listener_failed" in caplog.text


@pytest.fixture
def cluster():
    with FakeCluster(brokers=("broker-a", "broker-b")) as cluster:
        cluster.create_topic("t", queues=1)
        yield cluster


EITHER_KIND = pytest.mark.parametrize("kind", ["push", "pull"])
EITHER_CODE = pytest.mark.parametrize(
    "code", [RequestCode.HEART_BEAT, RequestCode.PULL_MESSAGE], ids=lambda code: code.name
)


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


@EITHER_KIND
def test_the_start_raises_if_every_broker_refuses(cluster, kind):
    refuse(cluster, RequestCode.HEART_BEAT, "broker-a", "broker-b")

    with pytest.raises(BrokerError, match=r"User:bob has no permission.*have an administrator allow it"):
        make(kind, cluster).start()


@EITHER_KIND
@EITHER_CODE
def test_a_listener_is_told_which_broker_refuses_if_another_does_not(cluster, kind, code):
    told: list[BrokerError] = []
    refuse(cluster, code, "broker-b")

    with make(kind, cluster, told.append):
        wait_until(lambda: told, seconds=PATIENCE)

    assert [error.addr for error in told] == [cluster.addr("broker-b")]


@EITHER_CODE
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
    told: list[BrokerError] = []

    with make("push", cluster, told.append, client_rebalance=False, delay_after_error=0.05):
        wait_until(lambda: len(told) == 2, seconds=PATIENCE)

    assert [error.addr for error in told] == [cluster.addr("broker-b")] * 2
