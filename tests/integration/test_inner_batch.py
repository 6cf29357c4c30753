"""Batches that a broker keeps as one message: topics with the queue type BatchCQ."""

import threading
from typing import Any

import pyarrow as pa
import pytest

from rmqtools import (
    Admin,
    Client,
    Message,
    MessageQueue,
    Producer,
    ProducerConfig,
    QueueRange,
)
from rmqtools.arrow import read_range, send_batches
from tests.support.cluster_scene import wait_until
from tests.support.listening import Heard, committed, new_group
from tests.support.patience import PATIENCE
from tests.support.raw_sends import create_batch_topic, send_batch

pytestmark = pytest.mark.broker

BATCHES, SIZE = 20, 25
COUNT = BATCHES * SIZE


@pytest.fixture
def queue(admin: Admin) -> MessageQueue:
    """A queue that holds batches."""
    return create_batch_topic(admin)


@pytest.fixture
def filled(admin: Admin, queue: MessageQueue) -> MessageQueue:
    """The queue with all batches in it."""
    for number in range(BATCHES):
        send_batch(admin, queue, range(number * SIZE, (number + 1) * SIZE))
    admin.await_readable({queue: COUNT}, timeout=PATIENCE)
    return queue


def rows_of(client: Client, queue: MessageQueue, step: int = COUNT) -> list[dict[str, Any]]:
    """The rows of the queue, read in ranges of so many."""
    ranges = [QueueRange(queue, begin, min(begin + step, COUNT)) for begin in range(0, COUNT, step)]
    return [row for part in ranges for batch in read_range(client, part) for row in batch.to_pylist()]


def test_every_message_of_stored_batches_is_read_once_however_the_queue_is_cut(
    filled: MessageQueue, client: Client
) -> None:
    queue = filled
    whole = rows_of(client, queue)
    cut = [row["queueOffset"] for row in rows_of(client, queue, 77)]
    objects = [
        message.queue_offset
        for begin in range(0, COUNT, 77)
        for messages in client.read_messages(QueueRange(queue, begin, min(begin + 77, COUNT)))
        for message in messages
    ]

    assert {row["sysFlag"] & 0xC0 for row in whole} == {0xC0}  # they were stored so
    assert objects == list(range(COUNT))
    assert [row["queueOffset"] for row in whole] == list(range(COUNT)) == cut
    assert [int(row["body"]) for row in whole] == list(range(COUNT))
    assert [row["tags"] for row in whole] == [f"t{number % 3}" for number in range(COUNT)]


def test_a_push_consumer_hears_every_message_of_stored_batches_once(filled, consume, admin):
    group, heard = new_group(), Heard()
    consumer = consume(filled.topic, heard, group=group)

    found = heard.wait(COUNT)
    consumer.close()

    assert sorted(message.queue_offset for message in found) == list(range(COUNT))
    assert {message.queue_offset: int(message.body) for message in found} == {n: n for n in range(COUNT)}
    assert committed(admin, group, filled.topic) == COUNT


def test_a_message_of_a_stored_batch_that_fails_comes_again_alone(filled, consume, admin):
    group, seen, failed = new_group(), [], threading.Event()

    def listen(messages, context):
        (message,) = messages
        seen.append((message.body, message.topic, message.reconsume_times))
        context.delay_level_when_next_consume = 1
        if message.body == b"7" and not failed.is_set():
            failed.set()
            raise OSError("disk full")

    consume(filled.topic, listen, group=group)
    wait_until(lambda: len(seen) > COUNT)

    assert [one for one in seen if one[0] == b"7"] == [(b"7", filled.topic, 0), (b"7", filled.topic, 1)]
    assert len(seen) == COUNT + 1


@pytest.mark.parametrize(("inner", "flags"), [(True, 0xC0), (False, 0)])
def test_a_producer_has_its_batches_stored_whole_if_it_is_set_to(
    inner, flags, queue, admin, client, local_cluster
):
    config = ProducerConfig(name_server=local_cluster.name_server, inner_batches=inner)
    columns = pa.record_batch({"body": [b"%d" % n for n in range(SIZE, COUNT)]})
    with Producer(config) as producer:
        results = producer.send_many([Message(queue.topic, b"%d" % n) for n in range(SIZE)])
        report = send_batches(producer, [columns], topic=queue.topic)
    admin.await_readable({queue: COUNT}, timeout=PATIENCE)

    rows = rows_of(client, queue)

    assert [result.queue_offset for result in results] == list(range(SIZE))
    assert [result.msg_id for result in results] == [row["msgId"] for row in rows[:SIZE]]
    assert report.acked == COUNT - SIZE
    assert [int(row["body"]) for row in rows] == list(range(COUNT))
    assert {row["sysFlag"] & 0xC0 for row in rows} == {flags}
    assert len({row["msgId"] for row in rows}) == COUNT
