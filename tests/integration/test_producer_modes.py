"""Every way of sending, on a real cluster."""

from collections.abc import Iterator

import pytest

from rmqtools import Admin, Client, Message, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from rmqtools.errors import BrokerError
from tests.support.reading import await_messages
from tests.support.resting import RestingCluster

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def timer_cluster() -> Iterator[LocalCluster]:
    with RestingCluster(timer_wheel=True) as cluster:
        yield cluster


@pytest.mark.slow  # Java reads the same messages
def test_timer_messages_come_at_their_time_and_recalled_ones_never(timer_cluster):
    settings = ProducerConfig(name_server=timer_cluster.name_server, group="timers")
    with Producer(settings) as producer, Client(settings) as client, Admin(settings) as admin:
        admin.create_topic("timers", read_queue_nums=1, write_queue_nums=1)
        now = admin._admin._client.clock.now_ms()
        recalled = producer.send(Message("timers", b"never", delay=4.0))
        after = producer.send(Message("timers", b"after", delay=5.0))
        at = producer.send(Message("timers", b"at", deliver_at_ms=now + 8000))
        assert producer.recall("timers", recalled.recall_handle or "") == recalled.msg_id
        messages = await_messages(client, admin, "timers", 2, timeout=60)

    by_body = {message.body: message for message in messages}
    assert set(by_body) == {b"after", b"at"}
    assert {by_body[b"after"].msg_id, by_body[b"at"].msg_id} == {after.msg_id, at.msg_id}
    assert (by_body[b"after"].store_timestamp_ms - now) / 1000 == pytest.approx(5, abs=2)
    assert (by_body[b"at"].store_timestamp_ms - now) / 1000 == pytest.approx(8, abs=2)


def test_a_broker_without_a_timer_wheel_says_so(producer, make_topic):
    with pytest.raises(Exception, match="timer") as caught:
        producer.send(Message(make_topic(), b"x", delay=5.0))
    assert isinstance(caught.value.__cause__, BrokerError)
