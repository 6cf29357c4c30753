"""Cases for tests/unit/testing/test_plugin.py, which sets the ini option ``rocketmq = other``."""

import pytest

from rmqtools import Admin, Client, Message, MessageExt, Producer, QueueRange
from rmqtools.errors import UnknownOutcomeError
from rmqtools.testing import FakeCluster, Reaction, RequestCode

TYPE_CHECKING = False  # a type checker takes it as true: nothing more is imported at run time
if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def rocketmq() -> None:
    """In the place of the plugin's: no test here needs Java."""


def test_named_cluster_wins(
    fake_rocketmq: FakeCluster, topic: str, producer: Producer, rocketmq_cluster: FakeCluster
) -> None:
    assert rocketmq_cluster is fake_rocketmq
    assert producer.config.name_server == fake_rocketmq.name_server
    assert fake_rocketmq.messages(topic) == []


def test_fault_strikes(fake_rocketmq: FakeCluster, topic: str, producer: Producer) -> None:
    code = RequestCode.SEND_MESSAGE_V2
    fault = fake_rocketmq.fault(code=code, topic=topic, answer=Reaction.DISCONNECT, times=None)
    other = fake_rocketmq.fault(topic="another")
    with pytest.raises(UnknownOutcomeError):
        producer.send(Message(topic, b"body"))
    struck = fault.fired()
    fault.remove()
    producer.send(Message(topic, b"body"))

    assert (struck, fault.fired(), other.fired()) == (3, 3, 0)


def test_client_and_admin_are_started(
    fake_rocketmq: FakeCluster, rocketmq_client: Client, rocketmq_admin: Admin
) -> None:
    rocketmq_admin.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    fake_rocketmq.store("orders", b"1")
    (queue,) = rocketmq_admin.fetch_subscribe_queues("orders")

    blocks = rocketmq_client.read_messages(QueueRange(queue, 0, 1))

    assert [message.body for messages in blocks for message in messages] == [b"1"]


class TestOwnTopic:
    @pytest.fixture
    def topic(self, fake_rocketmq: FakeCluster) -> str:
        fake_rocketmq.create_topic("mine")
        return "mine"

    def test_own_fixture(
        self, fake_rocketmq: FakeCluster, topic: str, drain: "Callable[[str], list[MessageExt]]"
    ) -> None:
        fake_rocketmq.store(topic, b"1")

        assert [message.body for message in drain("mine")] == [b"1"]


def test_both_clusters(rocketmq: None, fake_rocketmq: FakeCluster, topic: str) -> None:
    """Is refused."""


def test_unknown_ini_option(topic: str) -> None:
    """Is refused."""
