"""Our own clients at work: alike on the fake cluster and on a real one."""

import pytest

from rmqtools import (
    ConsumeFromWhere,
    Message,
    MessageQueue,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    ReplyMessage,
    TransactionProducer,
    create_reply,
)
from rmqtools.errors import SendError
from rmqtools.model.names import dlq_topic
from tests.behaviour.site import consumer_offset, offset_of, pulled, until
from tests.support.listening import FIRST, Heard, listening, numbers
from tests.support.transactions import COMMIT, ROLLBACK, Listener


def test_what_a_producer_sends_a_push_consumer_hears_and_commits(site, wire, producer, topic, group):
    heard, queue = Heard(), MessageQueue(topic, site.broker, 0)
    with listening(site.name_server, topic, heard, group=group):
        results = [producer.send(Message(topic, body), queue=queue) for body in numbers(20)]
        heard.wait(20)

    assert [result.queue_offset for result in results] == list(range(20))
    assert sorted(heard.bodies, key=int) == numbers(20)
    assert offset_of(consumer_offset(wire, group, topic)) == 20


def test_a_message_whose_listener_fails_comes_again_and_ends_as_a_dead_letter(
    site, wire, producer, topic, group
):
    tries: list[tuple[str, int]] = []

    def fail(messages, context) -> None:
        tries.extend((one.topic, one.reconsume_times) for one in messages)
        context.delay_level_when_next_consume = 1
        raise RuntimeError("told to fail")

    with listening(site.name_server, topic, fail, group=group, max_reconsume_times=1):
        producer.send(Message(topic, b"broken"))
        dead = until(lambda: pulled(wire, dlq_topic(group), group=group))

    assert [message.body for message in dead] == [b"broken"]
    assert tries == [(topic, 0), (topic, 1)]


@pytest.mark.parametrize("model", ["CLUSTERING", "BROADCASTING"])
def test_what_is_sent_once_a_start_has_returned_and_while_no_member_runs_arrives(
    site, producer, topic, group, model, tmp_path
):
    heard, queues = Heard(), [MessageQueue(topic, site.broker, number) for number in range(2)]
    settings = {
        "group": group,
        "consume_from": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        "message_model": model,
        "offset_store_path": str(tmp_path / "offsets.json"),
    }
    with listening(site.name_server, topic, heard, **settings):  # stops while idle
        pass
    for queue in queues:
        producer.send(Message(topic, b"between"), queue=queue)
    with listening(site.name_server, topic, heard, **settings):
        for queue in queues:
            producer.send(Message(topic, b"at once"), queue=queue)
        heard.wait(4)

    assert sorted(heard.bodies) == [b"at once", b"at once", b"between", b"between"]


def test_two_members_share_the_queues_and_one_takes_over(site, topic, group):
    def owned(consumer) -> int:
        return len([queue for queue in consumer.queues if queue.topic == topic])

    one, two = (
        listening(site.name_server, topic, Heard(), group=group, instance_name=name)
        for name in ("one", "two")
    )
    with one as first:
        with two as second:
            until(lambda: (owned(first), owned(second)) == (1, 1))
        until(lambda: owned(first) == 2)


def test_messages_in_order_are_heard_one_after_the_other(site, producer, topic):
    heard, queue = Heard(), MessageQueue(topic, site.broker, 0)
    with listening(site.name_server, topic, heard, orderly=True):
        for body in numbers(10):
            producer.send(Message(topic, body), queue=queue)
        heard.wait(10)

    assert heard.bodies == numbers(10)


def test_a_pull_consumer_polls_by_tag_and_commits(site, wire, producer, topic, group):
    queue = MessageQueue(topic, site.broker, 0)
    consumer = PullConsumer(PullConsumerConfig(name_server=site.name_server, group=group, consume_from=FIRST))
    consumer.subscribe(topic, tags="a")
    with consumer:
        for tag in "abab":
            producer.send(Message(topic, tag.encode(), tags=tag), queue=queue)
        got = []
        until(lambda: got.extend(consumer.poll(1)) or len(got) == 2)

    assert [message.queue_offset for message in got] == [0, 2]
    assert offset_of(consumer_offset(wire, group, topic)) >= 3


def test_a_request_gets_the_reply_of_a_consumer(site, producer, topic):
    def answer(messages, _) -> None:
        for message in messages:
            producer.send(create_reply(message, b"pong"))

    with listening(site.name_server, topic, answer):
        reply = producer.request(Message(topic, b"ping"), timeout=20)

    assert reply.body == b"pong"
    assert "PUSH_REPLY_TIME" in reply.properties


def test_a_reply_to_a_client_that_is_gone_is_an_error(site, group):
    reply = ReplyMessage(
        "DefaultCluster_REPLY_TOPIC", b"pong", correlation_id=group, reply_to_client=group, ttl_ms="1000"
    )
    config = ProducerConfig(name_server=site.name_server, group="tests", retry_times_when_send_failed=0)
    with Producer(config) as producer, pytest.raises(SendError, match="not found"):
        producer.send(reply)


def test_a_transaction_is_committed_or_rolled_back(site, wire, topic, group):
    config = ProducerConfig(name_server=site.name_server, group=group)
    with TransactionProducer(config, Listener(decide=lambda message, arg: arg)) as producer:
        for state in (ROLLBACK, COMMIT):
            producer.send_message_in_transaction(Message(topic, state.name.encode()), state)
        found = until(lambda: pulled(wire, topic) + pulled(wire, topic, queue_id=1))

    assert [message.body for message in found] == [b"COMMIT_MESSAGE"]
