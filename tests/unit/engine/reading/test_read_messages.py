"""Messages of a range, one by one."""

import pytest

from rmqtools import Client, ClientConfig, MessageQueue, QueueRange
from rmqtools.engine.reading.read_messages import _inside
from rmqtools.testing import FakeCluster
from tests.unit.engine.consumer.push_scene import stored

QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.mark.parametrize(("begin", "end"), [(10, 15), (11, 15), (10, 14), (12, 13), (0, 10), (15, 99)])
def test_messages_of_a_stored_batch_that_are_outside_the_range_are_left_out(begin, end):
    batch = [stored(offset) for offset in range(10, 15)]
    found = _inside(batch, QueueRange(QUEUE, begin, end))

    assert [message.queue_offset for message in found] == [at for at in range(10, 15) if begin <= at < end]


@pytest.mark.parametrize(
    ("bounds", "sizes"),
    [
        pytest.param({"max_messages": 40}, [64, 64, 32], id="messages"),
        pytest.param({"max_messages": 1000, "max_bytes": 50_000}, [64, 64, 32], id="bytes"),
        pytest.param({"max_messages": 1000}, [160], id="all-at-once"),
    ],
)
def test_lists_have_about_the_wanted_size(bounds, sizes):
    """In whole pulls of 32 messages, whose records have a kilobyte each."""
    with FakeCluster() as cluster:
        cluster.create_topic("T")
        cluster.store("T", *[bytes(900)] * 160, queue=QUEUE)
        with Client(ClientConfig(name_server=cluster.name_server)) as client:
            found = [len(messages) for messages in client.read_messages(QueueRange(QUEUE, 0, 160), **bounds)]

    assert found == sizes
