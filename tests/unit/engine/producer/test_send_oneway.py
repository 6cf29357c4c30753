"""One-way sends: one attempt, whatever the broker does with it."""

import pytest

from rmqtools import Message, MessageQueue, Producer, ProducerConfig
from rmqtools.errors import RemotingConnectError
from rmqtools.testing import Reaction, RequestCode, ResponseCode
from tests.support.cluster_scene import wait_until

MESSAGE = Message("T", b"body")


@pytest.mark.parametrize(
    "answer", [Reaction.SILENCE, Reaction.DISCONNECT, ResponseCode.SYSTEM_BUSY], ids=["silent", "cut", "busy"]
)
def test_a_one_way_send_is_tried_once_and_its_loss_is_not_noticed(fake_rocketmq, answer):
    fake_rocketmq.create_topic("T", queues=1)
    lost = fake_rocketmq.fault(topic="T", code=RequestCode.SEND_MESSAGE_V2, times=None, answer=answer)
    with Producer(ProducerConfig(name_server=fake_rocketmq.name_server)) as producer:
        producer.send_oneway(MESSAGE)
        wait_until(lambda: lost.fired() == 1)
        lost.remove()
        producer.send(Message("T", b"later"))  # whatever would have been tried again came before it

    assert lost.fired() == 1
    assert [message.body for message in fake_rocketmq.messages("T")] == [b"later"]


@pytest.mark.parametrize(
    "choice",
    [
        pytest.param({"queue": MessageQueue("T", "broker-a", 2)}, id="queue"),
        pytest.param({"selector": lambda queues, message, arg: queues[arg], "arg": 2}, id="selector"),
    ],
)
def test_a_one_way_send_goes_to_the_queue_that_the_caller_chooses(fake_rocketmq, choice):
    fake_rocketmq.create_topic("T", queues=3)
    with Producer(ProducerConfig(name_server=fake_rocketmq.name_server)) as producer:
        for _ in range(3):
            producer.send_oneway(MESSAGE, **choice)
        wait_until(lambda: len(fake_rocketmq.messages("T")) == 3)

    assert {message.queue_id for message in fake_rocketmq.messages("T")} == {2}


def test_a_one_way_send_without_a_connection_raises(fake_rocketmq):
    fake_rocketmq.create_topic("T", queues=1)
    with Producer(ProducerConfig(name_server=fake_rocketmq.name_server)) as producer:
        producer.fetch_publish_queues("T")
        fake_rocketmq.stop("broker-a")
        with pytest.raises(RemotingConnectError):
            producer.send_oneway(MESSAGE)
