"""Batches that a broker keeps as one message: topics with the queue type BatchCQ."""

import uuid

import pytest

from rmqtools import Admin, Client, MessageQueue, QueueRange
from rmqtools.arrow import read_range
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.command import RemotingCommand, request
from rmqtools.protocol.headers import CreateTopicRequestHeader, SendMessageRequestHeaderV2
from rmqtools.protocol.message_batch import encode_batch_message

pytestmark = pytest.mark.broker

BATCHES, SIZE = 20, 25
COUNT = BATCHES * SIZE


@pytest.fixture
def queue(admin: Admin) -> MessageQueue:
    """The only queue of a topic whose queue holds batches."""
    topic = f"batches-{uuid.uuid4().hex[:8]}"
    header = CreateTopicRequestHeader(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=1,
        write_queue_nums=1,
        perm=6,
        topic_filter_type="SINGLE_TAG",
        topic_sys_flag=0,
        order=False,
        attributes="+queue.type=BatchCQ",
    )
    ask(admin, request(header))
    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])
    return MessageQueue(topic, "broker-a", 0)


def ask(admin: Admin, command: RemotingCommand) -> None:
    addr = admin.fetch_cluster_info().broker_addr_table["broker-a"].broker_addrs[0]
    admin._bridge.run(admin._admin.core.remoting.invoke_ok(addr, command))


def send_batch(admin: Admin, queue: MessageQueue, number: int) -> None:
    """A batch as Java's producer sends it: with a unique key of its own, which ours has not."""
    messages = (
        encode_batch_message(0, b"%d" % body, b"TAGS\x01t%d\x02" % (body % 3))
        for body in range(number * SIZE, (number + 1) * SIZE)
    )
    header = SendMessageRequestHeaderV2(
        producer_group="tests",
        topic=queue.topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=queue.queue_id,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
        properties=f"UNIQ_KEY\x01{uuid.uuid4().hex.upper()}\x02",
        reconsume_times=0,
        batch=True,
        broker_name=queue.broker_name,
    )
    ask(admin, request(header, b"".join(messages), code=RequestCode.SEND_BATCH_MESSAGE))


def test_every_message_of_stored_batches_is_read_once_however_the_queue_is_cut(
    queue: MessageQueue, client: Client, admin: Admin
) -> None:
    for number in range(BATCHES):
        send_batch(admin, queue, number)
    admin.await_readable({queue: COUNT})

    whole = [row for batch in read_range(client, QueueRange(queue, 0, COUNT)) for row in batch.to_pylist()]
    cut = [
        row["queueOffset"]
        for begin in range(0, COUNT, 77)
        for batch in read_range(client, QueueRange(queue, begin, min(begin + 77, COUNT)))
        for row in batch.to_pylist()
    ]

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
