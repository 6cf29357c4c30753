"""What exact appends rely on: alike on the fake cluster and on a real one."""

import pytest

from rmqtools import ExactAppender, Message, MessageQueue, Producer
from rmqtools.errors import SendError
from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.encoded_batch import EncodedBatch, MsgIds
from rmqtools.protocol.messages.batch import encode_batch
from tests.behaviour.site import pulled, until


def appender(producer: Producer, site, topic: str) -> ExactAppender:
    queue = MessageQueue(topic, site.broker, 0)
    return ExactAppender(producer, queue, writer="behaviour", settle_seconds=0)


def test_a_batch_is_stored_side_by_side_and_the_next_writer_finds_its_last_position(
    site, wire, topic, producer
):
    messages = [Message(topic, b"%d" % position) for position in range(50)]
    with appender(producer, site, topic) as first:
        first.append(messages, range(50))
    with appender(producer, site, topic) as second:  # the lock was released
        assert second.last_position == 49

    until(lambda: len(pulled(wire, topic)) > 0)
    found = pulled(wire, topic)
    marks = [message.properties[APPEND_MARK] for message in found]
    assert marks == [f"{position} behaviour " for position in range(len(found))]


def test_compressed_bodies_of_a_batch_keep_their_flag(site, wire, topic, producer):
    """A batch has one sys flag, which each of its messages gets; consumers decompress by it."""
    source = Message(topic, b"x" * 10_000)
    outgoing = producer._producer._encoder.encode(source)
    with appender(producer, site, topic) as writer:
        asynchronous = writer._appender
        body = encode_batch([(0, bytes(outgoing.body), f"{APPEND_MARK}\x010 behaviour \x02".encode())])
        batch = EncodedBatch(
            topic=topic,
            body=body,
            msg_ids=MsgIds("", 0, 1),
            queue=writer.queue,
            sys_flag=outgoing.sys_flag,
        )
        writer._bridge.run(lambda: asynchronous._writer.append(batch, [0]))

    until(lambda: pulled(wire, topic))
    (message,) = pulled(wire, topic)
    assert message.body == source.body


def test_a_topic_that_was_deleted_is_not_made_again_by_an_append(site, topic, producer):
    with appender(producer, site, topic) as writer:
        writer.append([Message(topic, b"0")], [0])
        site.admin.delete_topic(topic)
        with pytest.raises(SendError, match="TOPIC_NOT_EXIST"):
            writer.append([Message(topic, b"1")], [1])

    assert topic not in site.admin.fetch_topic_list()
