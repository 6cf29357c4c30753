"""What the first poll of a member hands out counts as consumed, as what later ones do."""

import pytest

from rmqtools import ConsumeFromWhere, MessageQueue, PullConsumer, PullConsumerConfig
from rmqtools.engine.consumer.hand_out import HandOut
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.testing import FakeCluster
from tests.support.clock import ManualClock
from tests.unit.engine.consumer.push_scene import stored

QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        cluster.create_topic("orders", queues=1)
        cluster.store("orders", b"1", b"2", b"3")
        yield cluster


@pytest.fixture
def consumer(cluster):
    config = PullConsumerConfig(
        name_server=cluster.name_server, group="g", consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    return PullConsumer(config)


def test_closing_after_one_poll_commits_what_it_returned(cluster, consumer):
    with consumer:
        consumer.subscribe("orders")
        assert len(consumer.poll(10, max_messages=2)) == 2

    assert cluster.committed("g", QUEUE) == 2


def test_a_commit_after_one_poll_commits_what_it_returned(cluster, consumer):
    with consumer:
        consumer.subscribe("orders")
        consumer.poll(10, max_messages=2)
        consumer.commit()
        assert cluster.committed("g", QUEUE) == 2


def test_closing_after_one_iteration_commits_what_it_returned(cluster, consumer):
    with consumer:
        consumer.subscribe("orders")
        for message in consumer:
            if message.body == b"2":
                break

    assert cluster.committed("g", QUEUE) == 2


async def test_a_queue_given_up_counts_as_consumed_up_to_the_last_poll_of_what_was_borrowed():
    held, hand_out = ProcessQueue(QUEUE, ManualClock(), 0), HandOut()
    held.put([stored(offset) for offset in range(100)])
    hand_out.arrived(held)
    hand_out.begin()
    assert hand_out.make_ready(10, ahead=100)
    for number in range(4):
        assert len(hand_out.ready.pop(number)) == 10

    assert (hand_out.consumed(held), hand_out.handed_out(held)) == (30, 40)
    hand_out.forget(held)
    assert not hand_out.ready


class CountingQueue(ProcessQueue):
    """Counts how often messages leave it."""

    departures = 0

    def consume(self, count: int) -> None:
        self.departures += 1
        super().consume(count)


async def test_messages_taken_one_by_one_leave_their_queues_together():
    queues = [
        CountingQueue(MessageQueue("orders", "broker-a", number), ManualClock(), 0) for number in (0, 1)
    ]
    hand_out = HandOut()
    for begin, held in zip((0, 1000), queues, strict=True):
        held.put([stored(offset) for offset in range(begin, begin + 100)])
        hand_out.arrived(held)
    hand_out.make_ready(1, ahead=128)
    taken = [hand_out.ready.pop(number)[0] for number in sorted(hand_out.ready)[:70]]
    hand_out.note_taken()

    assert [message.queue_offset for message in taken] == [*range(32), *range(1000, 1032), *range(32, 38)]
    assert [(held.departures, held.committable) for held in queues] == [(1, 38), (1, 1032)]
    assert hand_out.consumed(queues[0]) == 37  # the last one may not be consumed yet
    assert hand_out.consumed(queues[1]) == 1032
