"""Ten tests of a user's project on the fixtures of the pytest plugin, for the fake cluster and a real one."""

import queue
import threading

import pytest

from rmqtools import (
    ConsumeFromWhere,
    LocalTransactionState,
    Message,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    TransactionProducer,
    create_reply,
)

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.fixture
def consume(rocketmq_cluster, topic):
    """``consume(listener, ...)``: a started consumer of the topic; what it got arrives in its ``heard``."""
    consumers = []

    def consume(listener=lambda *_: None, *, strategy=None, **settings):
        config = PushConsumerConfig(
            name_server=rocketmq_cluster.name_server,
            group=settings.pop("name", f"group-{topic}"),
            consume_from=FIRST,
            **settings,
        )
        consumer = PushConsumer(config, strategy=strategy)
        consumer.heard = queue.SimpleQueue()

        def listen(messages, context):
            answer = listener(messages, context)
            for message in messages:
                consumer.heard.put(message)
            return answer

        consumer.subscribe(topic, listen)
        consumer.start()
        consumers.append(consumer)
        return consumer

    yield consume
    for consumer in consumers:
        consumer.close()


def test_a_message_is_stored_whole(producer, topic, drain):
    producer.send(Message(topic, b"a\x00b"))

    assert [message.body for message in drain(topic, 1)] == [b"a\x00b"]


def test_tags_keys_and_properties_arrive(producer, topic, drain):
    producer.send(Message(topic, b"body", tags="new", keys=["k1", "k2"], properties={"a": "1"}))

    (message,) = drain(topic, 1)
    assert (message.tags, message.keys, message.properties["a"]) == ("new", "k1 k2", "1")


def test_a_hundred_messages_arrive_once_each(producer, topic, drain):
    producer.send_many([Message(topic, b"%d" % number) for number in range(100)])

    assert sorted(int(message.body) for message in drain(topic, 100)) == list(range(100))
    assert drain(topic) == []


def test_messages_of_one_key_stay_in_order(producer, topic, drain):
    for number in range(5):
        producer.send_orderly(Message(topic, b"%d" % number, sharding_key="order-1"))

    assert [message.body for message in drain(topic, 5)] == [b"%d" % number for number in range(5)]


def test_a_listener_gets_what_is_sent(producer, topic, consume):
    consumer = consume()
    producer.send(Message(topic, b"body"))

    assert consumer.heard.get(timeout=20).body == b"body"


def test_a_failed_message_comes_again(producer, topic, consume):
    tries = []

    def fail_once(messages, context):
        context.delay_level_when_next_consume = 1
        tries.append(messages[0].reconsume_times)
        if len(tries) == 1:
            raise RuntimeError("told to fail")

    consumer = consume(fail_once)
    producer.send(Message(topic, b"body"))

    assert consumer.heard.get(timeout=30).reconsume_times == 1
    assert tries == [0, 1]


def test_a_pull_consumer_polls(producer, topic, rocketmq_cluster):
    config = PullConsumerConfig(
        name_server=rocketmq_cluster.name_server, group=f"pull-{topic}", consume_from=FIRST
    )
    consumer = PullConsumer(config)
    consumer.subscribe(topic)
    producer.send(Message(topic, b"body"))
    with consumer:
        assert [message.body for message in consumer.poll(20)] == [b"body"]


class Decides:
    """A transaction listener that does what the argument says."""

    def execute_local_transaction(self, message, arg):
        return arg

    def check_local_transaction(self, message):
        return LocalTransactionState.UNKNOWN


def test_only_committed_messages_are_seen(rocketmq_cluster, topic, drain):
    config = ProducerConfig(name_server=rocketmq_cluster.name_server, group=f"transactions-{topic}")
    with TransactionProducer(config, Decides()) as producer:
        for state in (LocalTransactionState.ROLLBACK_MESSAGE, LocalTransactionState.COMMIT_MESSAGE):
            producer.send_message_in_transaction(Message(topic, state.name.encode()), state)

    assert [message.body for message in drain(topic, 1)] == [b"COMMIT_MESSAGE"]


def test_a_pinned_group_is_consumed_on_this_machine_only(producer, topic, pinned_group, consume):
    elsewhere = consume(name=pinned_group.name, strategy=pinned_group.strategy, client_ip="10.9.8.7")
    here = consume(name=pinned_group.name, strategy=pinned_group.strategy)
    for number in range(8):
        producer.send(Message(topic, b"%d" % number))

    assert sorted(here.heard.get(timeout=20).body for _ in range(8)) == [b"%d" % n for n in range(8)]
    assert elsewhere.heard.empty()


def test_a_request_gets_its_reply(producer, topic, consume):
    answered = threading.Event()

    def answer(messages, _context):
        producer.send(create_reply(messages[0], b"pong"))
        answered.set()

    consume(answer)

    assert producer.request(Message(topic, b"ping"), timeout=20).body == b"pong"
    assert answered.wait(20)
