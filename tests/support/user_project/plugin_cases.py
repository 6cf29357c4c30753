"""Cases for tests/unit/testing/test_plugin.py, which sets the ini option ``rocketmq = other``."""

import pytest

from rmqtools import Message
from rmqtools.errors import UnknownOutcomeError
from rmqtools.testing import Reaction, RequestCode


@pytest.fixture(scope="session")
def rocketmq():
    """In the place of the plugin's: no test here needs Java."""


def test_named_cluster_wins(fake_rocketmq, topic, producer, rocketmq_cluster):
    assert rocketmq_cluster is fake_rocketmq
    assert producer.config.name_server == fake_rocketmq.name_server
    assert fake_rocketmq.messages(topic) == []


def test_fault_strikes(fake_rocketmq, topic, producer):
    code = RequestCode.SEND_MESSAGE_V2
    fault = fake_rocketmq.fault(code=code, topic=topic, answer=Reaction.DISCONNECT, times=None)
    other = fake_rocketmq.fault(topic="another")
    with pytest.raises(UnknownOutcomeError):
        producer.send(Message(topic, b"body"))
    struck = fault.fired()
    fault.remove()
    producer.send(Message(topic, b"body"))

    assert (struck, fault.fired(), other.fired()) == (3, 3, 0)


class TestOwnTopic:
    @pytest.fixture
    def topic(self, fake_rocketmq):
        fake_rocketmq.create_topic("mine")
        return "mine"

    def test_own_fixture(self, fake_rocketmq, topic, drain):
        fake_rocketmq.store(topic, b"1")

        assert [message.body for message in drain("mine")] == [b"1"]


def test_both_clusters(rocketmq, fake_rocketmq, topic):
    """Is refused."""


def test_unknown_ini_option(topic):
    """Is refused."""
