"""Our own clients at work: alike on the fake cluster and on a real one."""

import threading

import pytest

from rmqtools import (
    ConsumeFromWhere,
    LocalTransactionState,
    Message,
    MessageQueue,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    ReplyMessage,
    TransactionProducer,
    create_reply,
)
from rmqtools.errors import SendError
from rmqtools.model.names import dlq_topic
from tests.behaviour.site import consumer_offset, offset_of, pulled, until

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def push_config(site, group, **settings) -> PushConsumerConfig:
    return PushConsumerConfig(name_server=site.name_server, group=group, consume_from=FIRST, **settings)


def test_what_a_producer_sends_a_push_consumer_hears_and_commits(site, wire, topic, group):
    heard: list[bytes] = []
    consumer = PushConsumer(push_config(site, group))
    consumer.subscribe(topic, lambda messages, _: heard.extend(one.body for one in messages))
    queue = MessageQueue(topic, site.broker, 0)
    with Producer(ProducerConfig(name_server=site.name_server, group="tests")) as producer, consumer:
        results = [producer.send(Message(topic, b"%d" % n), queue=queue) for n in range(20)]
        until(lambda: len(heard) == 20)

    assert [result.queue_offset for result in results] == list(range(20))
    assert sorted(heard, key=int) == [b"%d" % n for n in range(20)]
    assert offset_of(consumer_offset(wire, group, topic)) == 20


def test_a_message_whose_listener_fails_comes_again_and_ends_as_a_dead_letter(site, wire, topic, group):
    tries: list[tuple[str, int]] = []

    def fail(messages, context) -> None:
        tries.extend((one.topic, one.reconsume_times) for one in messages)
        context.delay_level_when_next_consume = 1
        raise RuntimeError("told to fail")

    consumer = PushConsumer(push_config(site, group, max_reconsume_times=1))
    consumer.subscribe(topic, fail)
    with Producer(ProducerConfig(name_server=site.name_server, group="tests")) as producer, consumer:
        producer.send(Message(topic, b"broken"))
        dead = until(lambda: pulled(wire, dlq_topic(group), group=group))

    assert [message.body for message in dead] == [b"broken"]
    assert tries == [(topic, 0), (topic, 1)]


@pytest.mark.parametrize("model", ["CLUSTERING", "BROADCASTING"])
def test_what_is_sent_once_a_start_has_returned_and_while_no_member_runs_arrives(
    site, topic, group, model, tmp_path
):
    heard: list[bytes] = []

    def member() -> PushConsumer:
        config = PushConsumerConfig(
            name_server=site.name_server,
            group=group,
            message_model=model,
            offset_store_path=str(tmp_path / "offsets.json"),
        )
        consumer = PushConsumer(config)
        consumer.subscribe(topic, lambda messages, _: heard.extend(one.body for one in messages))
        return consumer

    queues = [MessageQueue(topic, site.broker, number) for number in range(2)]
    with Producer(ProducerConfig(name_server=site.name_server, group="tests")) as producer:
        with member():  # stops while idle
            pass
        for queue in queues:
            producer.send(Message(topic, b"between"), queue=queue)
        with member():
            for queue in queues:
                producer.send(Message(topic, b"at once"), queue=queue)
            until(lambda: len(heard) == 4)

    assert sorted(heard) == [b"at once", b"at once", b"between", b"between"]


def test_two_members_share_the_queues_and_one_takes_over(site, topic, group):
    first, second = (PushConsumer(push_config(site, group, instance_name=name)) for name in ("one", "two"))
    for consumer in (first, second):
        consumer.subscribe(topic, lambda *_: None)

    def owned(consumer) -> int:
        return len([queue for queue in consumer.queues if queue.topic == topic])

    with first:
        with second:
            until(lambda: (owned(first), owned(second)) == (1, 1))
        until(lambda: owned(first) == 2)


def test_messages_in_order_are_heard_one_after_the_other(site, topic, group):
    heard: list[bytes] = []
    done = threading.Event()

    def listen(messages, _) -> None:
        heard.extend(one.body for one in messages)
        if len(heard) == 10:
            done.set()

    consumer = PushConsumer(push_config(site, group, orderly=True))
    consumer.subscribe(topic, listen)
    queue = MessageQueue(topic, site.broker, 0)
    with Producer(ProducerConfig(name_server=site.name_server, group="tests")) as producer, consumer:
        for number in range(10):
            producer.send(Message(topic, b"%d" % number), queue=queue)
        assert done.wait(20)

    assert heard == [b"%d" % number for number in range(10)]


def test_a_pull_consumer_polls_by_tag_and_commits(site, wire, topic, group):
    queue = MessageQueue(topic, site.broker, 0)
    consumer = PullConsumer(PullConsumerConfig(name_server=site.name_server, group=group, consume_from=FIRST))
    consumer.subscribe(topic, tags="a")
    with Producer(ProducerConfig(name_server=site.name_server, group="tests")) as producer, consumer:
        for tag in "abab":
            producer.send(Message(topic, tag.encode(), tags=tag), queue=queue)
        got = []
        until(lambda: got.extend(consumer.poll(1)) or len(got) == 2)

    assert [message.queue_offset for message in got] == [0, 2]
    assert offset_of(consumer_offset(wire, group, topic)) >= 3


def test_a_request_gets_the_reply_of_a_consumer(site, topic, group):
    config = ProducerConfig(name_server=site.name_server, group="tests")
    consumer = PushConsumer(push_config(site, group))
    with Producer(config) as producer:

        def answer(messages, _) -> None:
            for message in messages:
                producer.send(create_reply(message, b"pong"))

        consumer.subscribe(topic, answer)
        with consumer:
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


class Decides:
    """Executes a transaction by committing or rolling back as its argument says; knows nothing later."""

    def execute_local_transaction(self, _message, arg):
        return arg

    def check_local_transaction(self, _message):
        return LocalTransactionState.UNKNOWN


def test_a_transaction_is_committed_or_rolled_back(site, wire, topic, group):
    config = ProducerConfig(name_server=site.name_server, group=group)
    with TransactionProducer(config, Decides()) as producer:
        for state in (LocalTransactionState.ROLLBACK_MESSAGE, LocalTransactionState.COMMIT_MESSAGE):
            producer.send_message_in_transaction(Message(topic, state.name.encode()), state)
        found = until(lambda: pulled(wire, topic) + pulled(wire, topic, queue_id=1))

    assert [message.body for message in found] == [b"COMMIT_MESSAGE"]
