"""Messages of a range, one by one."""

import pytest

from rmqtools import MessageQueue, QueueRange
from rmqtools.engine.reading.read_messages import _inside
from tests.unit.engine.consumer.push_scene import stored


@pytest.mark.parametrize(("begin", "end"), [(10, 15), (11, 15), (10, 14), (12, 13), (0, 10), (15, 99)])
def test_messages_of_a_stored_batch_that_are_outside_the_range_are_left_out(begin, end):
    batch = [stored(offset) for offset in range(10, 15)]
    found = _inside(batch, QueueRange(MessageQueue("T", "broker-a", 0), begin, end))

    assert [message.queue_offset for message in found] == [at for at in range(10, 15) if begin <= at < end]
