"""A message whose body cannot be read, in a Spark job: option corruptBody."""

from uuid import uuid4

import pytest

from rmqtools import Message, MessageQueue, Producer
from tests.support.patience import PATIENCE
from tests.support.raw_sends import send_corrupt


@pytest.fixture
def topic(admin, local_cluster, producer: Producer) -> str:
    """Three messages in one queue; the second is corrupt."""
    queue = MessageQueue(f"corrupt-{uuid4().hex[:8]}", "broker-a", 0)
    admin.create_topic(queue.topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])
    producer.send(Message(queue.topic, b"first"), queue=queue)
    send_corrupt(admin, queue, b"as stored")
    producer.send(Message(queue.topic, b"last"), queue=queue)
    admin.await_readable({queue: 3}, timeout=PATIENCE)
    return queue.topic


@pytest.mark.parametrize(("choice", "body"), [("raw", b"as stored"), ("null", None)])
def test_a_job_reads_past_a_corrupt_body_where_it_is_told_to(topic, read, choice, body):
    rows = read(topic=topic, corruptBody=choice).orderBy("queueOffset").collect()

    bodies = [None if row.body is None else bytes(row.body) for row in rows]
    assert bodies == [b"first", body, b"last"]
    assert [row.queueOffset for row in rows] == [0, 1, 2]


def test_a_job_that_is_told_nothing_fails_and_names_queue_and_offset(topic, read):
    with pytest.raises(Exception, match=r"CorruptBodyError: .*queue offset 1 of") as caught:
        read(topic=topic).collect()

    assert topic in str(caught.value)
