"""The smoke set: one function a feature. It raises the refusal, or AssertionError where the feature fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rmqtools import (
    ConsumeContext,
    Message,
    MessageExt,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    QueueRange,
    SimpleConsumer,
    SimpleConsumerConfig,
    TransactionProducer,
    create_reply,
)
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.group import MessageRequestMode
from tests.support.listening import Heard, listening, numbers
from tests.support.transactions import COMMIT, ROLLBACK, Listener
from tests.versions.site import PATIENCE, Feature, Site

COUNT = 10
DELAY = 2.0  # seconds


def bodies(messages: Sequence[MessageExt]) -> list[bytes]:
    return sorted(message.body for message in messages)


def messages(topic: str) -> list[Message]:
    return [Message(topic, body, tags="t") for body in numbers(COUNT)]


def create_topic(site: Site) -> None:
    topic = site.topic(queues=3)
    assert [queue.queue_id for queue in site.queues(topic)] == [0, 1, 2]


def send(site: Site) -> None:
    topic = site.topic()
    for message in messages(topic):
        site.producer.send(message)
    assert bodies(site.read(topic, COUNT)) == numbers(COUNT)


def send_many(site: Site) -> None:
    topic = site.topic()
    site.producer.send_many(messages(topic))
    assert bodies(site.read(topic, COUNT)) == numbers(COUNT)


def send_async(site: Site) -> None:
    topic = site.topic()
    for future in [site.producer.send_async(message) for message in messages(topic)]:
        future.result(PATIENCE)
    assert bodies(site.read(topic, COUNT)) == numbers(COUNT)


def send_oneway(site: Site) -> None:
    topic = site.topic()
    for message in messages(topic):
        site.producer.send_oneway(message)
    assert bodies(site.read(topic, COUNT)) == numbers(COUNT)


def send_orderly(site: Site) -> None:
    topic = site.topic()
    for body in numbers(COUNT):
        site.producer.send_orderly(Message(topic, body, sharding_key="one"))
    assert [message.body for message in site.read(topic, COUNT)] == numbers(COUNT)


def send_batch(site: Site) -> None:
    topic = site.topic()
    results = site.producer.send_batch(messages(topic))
    assert [result.queue_offset for result in results] == list(range(COUNT))
    assert bodies(site.read(topic, COUNT)) == numbers(COUNT)


def delay_level(site: Site) -> None:
    _delayed(site, 1.0, delay_level=1)


def delay(site: Site) -> None:
    _delayed(site, DELAY, delay=DELAY)


def _delayed(site: Site, seconds: float, **settings: Any) -> None:
    topic = site.topic(queues=1)
    sent = SYSTEM_CLOCK.now_ms()
    site.producer.send(Message(topic, b"late", **settings))
    (message,) = site.read(topic, 1)
    waited = (message.store_timestamp_ms - sent) / 1000
    assert waited >= seconds - 1, "delivered at once"  # the timer wheel's step is a second


def recall(site: Site) -> None:
    topic = site.topic(queues=1)
    sent = site.producer.send(Message(topic, b"never", delay=3.0))
    handle: Any = sent.recall_handle  # None of an old broker, which recall refuses
    assert site.producer.recall(topic, handle) == sent.msg_id
    site.producer.send(Message(topic, b"after", delay=5.0))
    assert bodies(site.read(topic, 1)) == [b"after"]


def request_and_reply(site: Site) -> None:
    topic = site.topic()

    def answer(messages: Sequence[MessageExt], context: ConsumeContext) -> None:
        for message in messages:
            site.producer.send(create_reply(message, b"re: " + message.body))

    with listening(site.name_server, topic, answer):
        reply = site.producer.request(Message(topic, b"question"), timeout=PATIENCE)
    assert reply.body == b"re: question"


def transaction(site: Site) -> None:
    topic = site.topic(queues=1)
    config = ProducerConfig(name_server=site.name_server, group=site.name("group"))
    with TransactionProducer(config, Listener(decide=lambda message, arg: arg)) as producer:
        producer.send_message_in_transaction(Message(topic, b"rolled back"), ROLLBACK)
        producer.send_message_in_transaction(Message(topic, b"committed"), COMMIT)
    assert bodies(site.read(topic, 1)) == [b"committed"]


def push(site: Site) -> None:
    topic, heard = site.topic(), Heard()
    site.producer.send_many(messages(topic))
    with listening(site.name_server, topic, heard):
        heard.wait(COUNT, seconds=PATIENCE)
    assert sorted(heard.bodies) == numbers(COUNT)


def push_orderly(site: Site) -> None:
    topic, heard = site.topic(), Heard()
    for body in numbers(COUNT):
        site.producer.send_orderly(Message(topic, body, sharding_key="one"))
    with listening(site.name_server, topic, heard, orderly=True):
        heard.wait(COUNT, seconds=PATIENCE)
    assert heard.bodies == numbers(COUNT)


def pull(site: Site) -> None:
    topic = site.topic()
    site.producer.send_many(messages(topic))
    config = PullConsumerConfig(
        name_server=site.name_server,
        group=site.name("group"),
        consume_from="CONSUME_FROM_FIRST_OFFSET",
    )
    with PullConsumer(config) as consumer:
        consumer.subscribe(topic)
        got: list[MessageExt] = []
        while polled := consumer.poll(PATIENCE if len(got) < COUNT else 0, COUNT):
            got += polled
    assert bodies(got) == numbers(COUNT)


def pop(site: Site) -> None:
    topic, group, heard = site.topic(), site.name("group"), Heard()
    site.admin.create_group(group)
    site.admin.set_message_request_mode(topic, group, MessageRequestMode.POP)
    site.producer.send_many(messages(topic))
    with listening(site.name_server, topic, heard, group=group, client_rebalance=False):
        heard.wait(COUNT, seconds=PATIENCE)
    assert sorted(heard.bodies) == numbers(COUNT)


def broker_rebalance(site: Site) -> None:
    topic, heard = site.topic(), Heard()
    site.producer.send_many(messages(topic))
    with listening(site.name_server, topic, heard, client_rebalance=False):
        heard.wait(COUNT, seconds=PATIENCE)
    assert sorted(heard.bodies) == numbers(COUNT)


def simple_consumer(site: Site) -> None:
    topic, got = site.topic(), list[MessageExt]()
    site.producer.send_many(messages(topic))
    with _receiving(site, topic) as consumer:
        while len(got) < COUNT:
            found = consumer.receive(wait=PATIENCE)
            assert found, got
            consumer.ack(found)
            got += found
        assert consumer.receive(wait=1.0) == []
    assert bodies(got) == numbers(COUNT)


def suspended_try(site: Site) -> None:
    topic = site.topic(queues=1)
    site.producer.send(Message(topic, b"later"))
    with _receiving(site, topic) as consumer:
        (first,) = consumer.receive(wait=PATIENCE)
        consumer.change_invisible_duration(first, 1.0, suspend=True)
        (again,) = consumer.receive(wait=PATIENCE)
        consumer.ack(again)
    assert (again.body, again.reconsume_times) == (b"later", 0)


@contextmanager
def _receiving(site: Site, topic: str) -> Iterator[SimpleConsumer]:
    group = site.name("group")
    site.admin.create_group(group)
    config = SimpleConsumerConfig(
        name_server=site.name_server, group=group, consume_from="CONSUME_FROM_FIRST_OFFSET"
    )
    with SimpleConsumer(config) as consumer:
        consumer.subscribe(topic)
        yield consumer


def range_read(site: Site) -> None:
    topic = site.topic(queues=1)
    site.producer.send_many(messages(topic))
    site.read(topic, COUNT)
    (queue,) = site.queues(topic)
    batches = site.client.read_messages(QueueRange(queue, 3, 7))
    assert [message.queue_offset for batch in batches for message in batch] == [3, 4, 5, 6]


def spark_batch(site: Site) -> None:
    topic = site.topic()
    frame = site.spark().createDataFrame([(body,) for body in numbers(COUNT)], "body binary")
    frame.write.format("rocketmq").options(**site.options(topic)).mode("append").save()
    rows = site.spark().read.format("rocketmq").options(**site.options(topic)).load().collect()
    assert sorted(bytes(row.body) for row in rows) == numbers(COUNT)


def spark_stream(site: Site) -> None:
    from tests.spark.streams import Stream  # here: unit tests read the names of the features, without Spark

    topic = site.topic()
    site.producer.send_many(messages(topic))
    site.read(topic, COUNT)
    stream = Stream(site.spark(), site.folder / topic, site.options(topic) | {"startingOffsets": "earliest"})
    stream.run()
    assert sorted(bytes(row.body) for row in stream.rows()) == numbers(COUNT)


FEATURES: dict[str, Feature] = {
    "create a topic": create_topic,
    "`send`": send,
    "`send_many`": send_many,
    "`send_async`": send_async,
    "`send_oneway`": send_oneway,
    "`send_orderly`": send_orderly,
    "`send_batch`": send_batch,
    "`delay_level`": delay_level,
    "`delay` in seconds": delay,
    "`recall`": recall,
    "`request` and reply": request_and_reply,
    "transaction": transaction,
    "push consumer": push,
    "push consumer, `orderly`": push_orderly,
    "pull consumer": pull,
    "`client_rebalance=False`": broker_rebalance,
    "the same, queues popped": pop,
    "`SimpleConsumer`": simple_consumer,
    "the same, a try that does not count (`suspend=True`)": suspended_try,
    "range read": range_read,
    "Spark batch": spark_batch,
    "Spark stream": spark_stream,
}
