"""The simple consumer at work: alike on the fake cluster and on a real one."""

import pickle
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from rmqtools import Message, MessageQueue, SimpleConsumer, SimpleConsumerConfig
from rmqtools.cluster import LocalCluster
from rmqtools.errors import AcknowledgeError, BrokerError, ReceiptError
from rmqtools.model.message import MessageExt
from rmqtools.model.names import dlq_topic
from rmqtools.protocol.headers.pop_extra_info import parse_extra_info
from tests.behaviour.site import pulled, until
from tests.support.listening import FIRST
from tests.support.patience import PATIENCE
from tests.support.resting import RestingCluster

SLOW_ON_REAL = pytest.mark.parametrize(
    "site", ["fake", pytest.param("real", marks=[pytest.mark.broker, pytest.mark.slow])], indirect=True
)
REVIVED = 30.0  # seconds in which a broker gives out again what nobody acknowledged


@pytest.fixture(scope="module")
def local_cluster() -> Iterator[LocalCluster]:
    """Brokers that may pop: 5.5.0 forbids it where the timer wheel is off."""
    with RestingCluster(brokers=2, timer_wheel=True) as cluster:
        yield cluster


@pytest.fixture
def member(site, group, topic) -> Iterator[Callable[..., SimpleConsumer]]:
    """``member(tags=..., ...)``: a started member of the group that receives the topic."""
    with ExitStack() as stack:

        def make(*, tags: str = "*", sql: str | None = None, topics=None, **settings) -> SimpleConsumer:
            consumer = SimpleConsumer(config(site, group, **settings))
            for name in (topic,) if topics is None else topics:
                consumer.subscribe(name, tags=tags, sql=sql)
            return stack.enter_context(consumer)

        yield make


def config(site, group, **settings) -> SimpleConsumerConfig:
    given: dict[str, Any] = {"consume_from": FIRST, "wait": REVIVED} | settings
    return SimpleConsumerConfig(name_server=site.name_server, group=group, **given)


def receive(consumer: SimpleConsumer, count: int, **asked) -> list[MessageExt]:
    """Receive until there are so many."""
    found: list[MessageExt] = []
    while len(found) < count:
        messages = consumer.receive(max_messages=min(32, count - len(found)), **asked)
        assert messages, f"{len(found)} of {count} came"
        found += messages
    return found


def stays_away(site, consumer: SimpleConsumer, seconds: float) -> bool:
    """Return whether no message comes within so many seconds. The fake's time jumps."""
    if site.fake is None:
        return consumer.receive(wait=seconds) == []
    site.fake.advance(seconds)
    return consumer.receive(wait=0) == []


def pass_time(site, seconds: float) -> None:
    """Let the fake's time pass; on a real broker the next receive waits for it."""
    if site.fake is not None:
        site.fake.advance(seconds)


def bodies(messages: list[MessageExt]) -> list[bytes]:
    return sorted(message.body for message in messages)


def test_what_is_received_and_acknowledged_does_not_come_again(site, producer, topic, member):
    producer.send_many([Message(topic, b"%d" % n) for n in range(3)])
    consumer = member()

    messages = receive(consumer, 3, invisible_duration=1.0)
    consumer.ack(messages)
    consumer.ack(messages[0])

    assert bodies(messages) == [b"0", b"1", b"2"]
    assert stays_away(site, consumer, 3.0)


@SLOW_ON_REAL
def test_what_is_acknowledged_together_does_not_come_again_and_the_rest_does(site, producer, topic, member):
    producer.send_many([Message(topic, b"%d" % n) for n in range(20)])
    consumer = member()

    messages = receive(consumer, 20, invisible_duration=3.0)
    consumer.ack(messages[:7] + messages[8:], batched=True)
    pass_time(site, 3.0)
    again = receive(consumer, 1)

    assert bodies(again) == [messages[7].body]
    assert stays_away(site, consumer, 2.0)


def test_what_is_not_acknowledged_comes_again_under_its_topic_and_can_then_be_acknowledged(
    site, producer, topic, member
):
    producer.send(Message(topic, b"again", tags="a"))
    consumer = member(tags="a")

    (first,) = consumer.receive(invisible_duration=1.0)
    pass_time(site, 1.0)
    (again,) = consumer.receive(invisible_duration=1.0)
    consumer.ack(again)

    assert (first.reconsume_times, again.reconsume_times) == (0, 1)
    assert (again.topic, again.body, again.msg_id) == (topic, b"again", first.msg_id)
    assert stays_away(site, consumer, 3.0)


def test_only_messages_with_the_tags_come(producer, topic, member):
    producer.send_many([Message(topic, tag.encode(), tags=tag) for tag in ("a", "b", "c")])

    messages = receive(member(tags="a || c"), 2)

    assert bodies(messages) == [b"a", b"c"]


@pytest.mark.parametrize("site", [pytest.param("real", marks=pytest.mark.broker)], indirect=True)
def test_a_condition_on_properties_selects_messages(producer, topic, member):
    producer.send_many([Message(topic, b"%d" % n, properties={"size": str(n)}) for n in range(4)])

    messages = receive(member(sql="size > 1"), 2)

    assert bodies(messages) == [b"2", b"3"]


@SLOW_ON_REAL
def test_a_receipt_changed_twice_counts_and_the_two_before_are_refused(site, producer, topic, member):
    producer.send(Message(topic, b"long"))
    consumer = member()
    (first,) = consumer.receive(invisible_duration=1.0)

    second = consumer.change_invisible_duration(first, 60.0)
    third = consumer.change_invisible_duration(second, 2.0)
    with pytest.raises(AcknowledgeError, match="2 of 3 messages were not acknowledged") as caught:
        consumer.ack([first, second, third])
    with pytest.raises(ReceiptError, match="was replaced: use the message that"):
        consumer.change_invisible_duration(first, 60.0)

    assert [message for message, _ in caught.value.failed] == [first, second]
    assert {type(error) for _, error in caught.value.failed} == {ReceiptError}
    assert stays_away(site, consumer, 4.0)


@SLOW_ON_REAL
def test_a_message_hidden_for_less_comes_from_the_retry_topic_under_its_own(site, producer, topic, member):
    producer.send(Message(topic, b"short"))
    consumer = member()
    (first,) = consumer.receive(invisible_duration=600.0)

    consumer.change_invisible_duration(first, 1.0)
    pass_time(site, 1.0)
    (again,) = consumer.receive()

    assert (again.body, again.topic, again.reconsume_times) == (b"short", topic, 1)


def test_a_suspended_try_does_not_count(site, producer, topic, member):
    producer.send(Message(topic, b"later"))
    consumer = member(max_reconsume_times=0)
    (first,) = consumer.receive()

    consumer.change_invisible_duration(first, 1.0, suspend=True)
    pass_time(site, 1.0)
    (again,) = consumer.receive()

    assert (again.body, again.reconsume_times) == (b"later", 0)


@SLOW_ON_REAL
def test_a_receipt_that_has_ended_is_refused(site, producer, topic, member):
    producer.send(Message(topic, b"late"))
    consumer = member()
    (first,) = consumer.receive(invisible_duration=1.0)
    pass_time(site, 1.0)
    receive(consumer, 1)  # the same message

    with pytest.raises(AcknowledgeError, match=r"ended .* s ago: the message comes again"):
        consumer.ack(first)
    with pytest.raises(ReceiptError, match=r"ended .* s ago"):
        consumer.change_invisible_duration(first, 5.0)


@SLOW_ON_REAL
def test_a_receive_without_an_invisible_time_has_that_of_the_settings(producer, topic, member):
    producer.send(Message(topic, b"default"))

    (message,) = member(invisible_duration=45.0).receive()

    assert parse_extra_info(message.properties["POP_CK"]).invisible_time == 45_000


_ACKNOWLEDGE = """
import pickle, sys
from rmqtools import SimpleConsumer, SimpleConsumerConfig

with SimpleConsumer(SimpleConsumerConfig(name_server=sys.argv[1], group=sys.argv[2])) as consumer:
    consumer.ack(pickle.load(sys.stdin.buffer))
"""


@pytest.mark.slow
def test_another_process_can_acknowledge(site, producer, topic, group, member):
    producer.send(Message(topic, b"elsewhere"))
    consumer = member()
    (message,) = consumer.receive(invisible_duration=8.0)

    command = [sys.executable, "-c", _ACKNOWLEDGE, site.name_server, group]
    subprocess.run(command, input=pickle.dumps(message), check=True, timeout=PATIENCE)

    assert stays_away(site, consumer, 10.0)


@pytest.mark.process
def test_a_message_past_its_tries_becomes_a_dead_letter(site, wire, producer, topic, group, member):
    producer.send(Message(topic, b"dead", tags="a"))
    consumer = member(max_reconsume_times=0)
    (first,) = consumer.receive()
    consumer.change_invisible_duration(first, 1.0)
    pass_time(site, 1.0)

    found = until(lambda: consumer.receive(wait=1.0) or pulled(wire, dlq_topic(group), group=group))

    assert [(one.topic, one.body, one.tags) for one in found] == [(dlq_topic(group), b"dead", "a")]
    assert stays_away(site, consumer, 1.0)


@pytest.mark.process
@SLOW_ON_REAL
def test_many_threads_share_a_consumer_and_get_each_message_once(producer, topic, member):
    wanted = {b"%d" % n for n in range(300)}
    producer.send_many([Message(topic, body) for body in wanted])
    consumer = member(wait=1.0)
    found: list[bytes] = []

    def work() -> None:
        while len(found) < len(wanted):
            messages = consumer.receive(max_messages=8)
            consumer.ack(messages)
            found.extend(message.body for message in messages)

    with ThreadPoolExecutor(6) as threads:
        for each in [threads.submit(work) for _ in range(6)]:
            each.result(PATIENCE)

    assert (len(found), set(found)) == (len(wanted), wanted)


@pytest.mark.process
@SLOW_ON_REAL
def test_an_iteration_yields_messages_until_it_is_closed(producer, topic, member):
    producer.send_many([Message(topic, b"%d" % n) for n in range(10)])
    consumer = member()
    found: list[MessageExt] = []

    for message in consumer:
        found.append(message)
        if len(found) == 4:
            break
    for message in consumer:
        found.append(message)
        consumer.ack(message)
        if len(found) == 10:
            threading.Timer(0.1, consumer.close).start()

    assert bodies(found) == sorted(b"%d" % n for n in range(10))


@pytest.mark.process
def test_a_place_without_messages_does_not_delay_those_of_another(site, producer, member):
    """Two brokers: the message is at the second, while nothing comes at the first."""
    topic = f"test-{uuid.uuid4().hex[:12]}"
    site.admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
    consumer = member(topics=[topic])
    assert consumer.receive(wait=0) == []
    queues = {queue.broker_name: queue for queue in site.admin.fetch_publish_queues(topic)}
    assert len(queues) == 2
    took = []
    for queue in queues.values():
        timer = threading.Timer(0.2, producer.send, (Message(topic, b"x"),), {"queue": queue})
        timer.start()
        began = time.monotonic()
        (message,) = consumer.receive(wait=REVIVED)
        took.append(time.monotonic() - began)
        assert message.broker_name == queue.broker_name
        consumer.ack(message)
        timer.join()

    assert max(took) < REVIVED / 2


@pytest.mark.process
def test_in_order_a_queue_gives_nothing_before_all_of_it_is_acknowledged(producer, topic, member):
    queue = MessageQueue(topic, "broker-a", 0)
    for n in range(4):
        producer.send(Message(topic, b"%d" % n), queue=queue)
    one, two = member(fifo=True), member(fifo=True)

    first = receive(one, 2)
    assert two.receive(wait=0.5) == []
    one.ack(first[0])
    assert two.receive(wait=0.5) == []
    one.ack(first[1])
    second = two.receive(max_messages=1)
    two.ack(second)
    third = one.receive()

    assert [message.body for message in (*first, *second, *third)] == [b"0", b"1", b"2", b"3"]
    assert {message.reconsume_times for message in (*first, *second, *third)} == {0}


def test_in_order_a_message_that_is_not_acknowledged_blocks_and_comes_first_again(
    site, producer, topic, member
):
    queue = MessageQueue(topic, "broker-a", 0)
    for n in range(3):
        producer.send(Message(topic, b"%d" % n), queue=queue)
    consumer = member(fifo=True)

    receive(consumer, 1, invisible_duration=1.0)
    pass_time(site, 1.0)
    again = receive(consumer, 2)

    assert [(one.body, one.reconsume_times) for one in again] == [(b"0", 1), (b"1", 0)]


def test_what_was_consumed_comes_again_after_a_reset(site, producer, topic, group, member):
    queue = MessageQueue(topic, site.broker, 0)
    for number in range(3):
        producer.send(Message(topic, b"%d" % number), queue=queue)
    consumer = member()
    consumer.ack(receive(consumer, 3))

    site.admin.reset_queue_offset(group, queue, 1)
    again = receive(consumer, 2)
    consumer.ack(again)
    site.admin.reset_offsets(group, topic, 0)
    all_again = receive(consumer, 3)

    assert (bodies(again), bodies(all_again)) == ([b"1", b"2"], [b"0", b"1", b"2"])


def test_a_group_that_may_not_consume_is_refused(site, group, member):
    site.admin.create_group(group, consume_enable=False)

    with pytest.raises(BrokerError, match=f"subscription group no permission, {group}"):
        member().receive()
