"""Messages whose bodies cannot be read, on a real broker: nothing stops, nothing good is lost."""

import uuid
from typing import Any

import pytest

from rmqtools import (
    Admin,
    ConsumeFromWhere,
    Message,
    MessageQueue,
    Producer,
    PullConsumer,
    PullConsumerConfig,
    QueueRange,
)
from rmqtools.arrow import read_range
from rmqtools.errors import CorruptBodyError
from tests.support.cluster_scene import wait_until
from tests.support.listening import committed, new_group
from tests.support.patience import PATIENCE
from tests.support.raw_sends import send_corrupt

pytestmark = pytest.mark.broker

AT, COUNT = 4, 10


@pytest.fixture
def queue(admin: Admin, producer: Producer) -> MessageQueue:
    """A queue of ten messages; the fifth is corrupt."""
    queue = MessageQueue(f"corrupt-{uuid.uuid4().hex[:8]}", "broker-a", 0)
    admin.create_topic(queue.topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])
    for number in range(COUNT):
        if number == AT:
            send_corrupt(admin, queue, b"not compressed")
        else:
            producer.send(Message(queue.topic, b"%d" % number), queue=queue)
    admin.await_readable({queue: COUNT}, timeout=PATIENCE)
    return queue


class Reads:
    """A listener that reads bodies, and notes what it was given."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []
        self.bodies: list[bytes] = []

    def __call__(self, messages, context) -> None:
        self.given.append([message.queue_offset for message in messages])
        context.delay_level_when_next_consume = 1
        self.bodies += [message.body for message in messages]


GOOD = [b"%d" % number for number in range(COUNT) if number != AT]


def test_in_any_order_a_corrupt_message_is_tried_again_and_its_neighbours_are_consumed(queue, consume, admin):
    group, listener = new_group(), Reads()
    consume(queue.topic, listener, group=group, consume_message_batch_max_size=10)

    wait_until(lambda: sum(map(len, listener.given)) > COUNT)  # once more, from the retry topic
    wait_until(lambda: committed(admin, group, queue.topic) == COUNT)

    assert sorted(listener.bodies) == sorted(GOOD)
    assert [AT] in listener.given


def test_a_pull_consumer_hands_it_out(queue, local_cluster):
    config = PullConsumerConfig(
        name_server=local_cluster.name_server,
        group=new_group(),
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    found: list[Any] = []
    with PullConsumer(config) as consumer:
        consumer.assign([queue])
        consumer.seek_to_begin(queue)
        while len(found) < COUNT:
            found += consumer.poll(10.0)

    errors = [message.body_error for message in found]
    assert [number for number, error in enumerate(errors) if error is not None] == [AT]
    assert errors[AT].raw == b"not compressed"
    assert [message.body for message in found if message.body_error is None] == GOOD


def test_range_reads_do_what_they_are_told(queue, client):
    range_ = QueueRange(queue, 0, COUNT)

    def bodies(choice):
        batches = read_range(client, range_, corrupt_body=choice)
        return [body for batch in batches for body in batch["body"].to_pylist()]

    assert bodies("raw")[AT] == b"not compressed"
    assert bodies("null")[AT] is None
    with pytest.raises(CorruptBodyError, match=f"queue offset {AT} of .*{queue.topic}"):
        bodies("fail")
    with pytest.raises(CorruptBodyError, match=f"queue offset {AT} of .*{queue.topic}"):
        list(client.read_messages(range_))
