"""Push consumers on real brokers: changing topics and hands, namespaces, broadcasting, first offsets."""

import threading
import uuid
from functools import partial

import pytest

from rmqtools import (
    ConsumeConcurrentlyStatus,
    Message,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
)
from tests.support.cluster_scene import wait_until
from tests.support.listening import Heard, new_group, numbers
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.broker

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER


def test_topics_come_and_go_while_the_consumer_runs(consume, send, make_topic, admin):
    one, other, group, heard, other_heard = make_topic(), make_topic(), new_group(), Heard(), Heard()
    consumer = consume(one, heard, group=group)
    consumer.subscribe(other, other_heard)
    send(other, numbers(10))
    other_heard.wait(10)
    consumer.subscribe(one, heard, tags="none")
    consumer.unsubscribe(one)
    wait_until(lambda: {queue.topic for queue in consumer.queues} == {other, f"%RETRY%{group}"})
    send(one, numbers(10))
    consumer.subscribe(one, heard)

    assert sorted(message.body for message in heard.wait(10)) == numbers(10)


def test_a_message_that_is_consumed_while_its_queue_changes_hands_comes_once(consume, send, make_topic):
    topic, group, gate = make_topic(queues=1, broker_names=["broker-a"]), new_group(), threading.Event()
    first, second = Heard(lambda *_: gate.wait(PATIENCE) and None), Heard()
    send(topic, numbers(6))
    leaving = consume(topic, first, group=group, orderly=True, instance_name="z")
    first.wait(1)
    consume(topic, second, group=group, orderly=True, instance_name="a")  # sorts before: gets the queue
    wait_until(lambda: topic not in {queue.topic for queue in leaving.queues})
    gate.set()
    second.wait(5)

    assert sorted(first.bodies + second.bodies) == numbers(6)
    assert first.bodies == [b"0"]


def test_in_a_namespace_names_are_plain_to_users_and_whole_on_the_wire(consume, local_cluster, admin):
    name, group, failures = f"test-{uuid.uuid4().hex[:12]}", new_group(), []

    def fail_once(messages, context):
        failures.append(context.message_queue.topic)
        context.delay_level_when_next_consume = 1
        return LATER if messages[0].reconsume_times == 0 else None

    admin.create_topic(f"ns%{name}", read_queue_nums=1, write_queue_nums=1)
    heard = Heard(fail_once)
    consumer = consume(name, heard, group=group, namespace="ns")
    with Producer(ProducerConfig(name_server=local_cluster.name_server, namespace="ns")) as producer:
        producer.send(Message(name, b"x"))

    assert [message.topic for message in heard.wait(2)] == [name, name]
    assert failures[0] == name
    assert {queue.topic for queue in consumer.queues} >= {name}
    assert admin.fetch_consumer_ids(f"ns%{group}") == [consumer.client_id]


# broadcasting


def broadcasting(path, name):
    return {
        "message_model": "BROADCASTING",
        "offset_store_path": str(path / f"{name}.json"),
        "instance_name": name,
    }


def test_broadcasting_every_member_gets_all_and_goes_on_where_it_was(consume, send, make_topic, tmp_path):
    topic, group = make_topic(), new_group()
    one, other, again = Heard(), Heard(lambda *_: LATER), Heard()
    member = consume(topic, one, group=group, **broadcasting(tmp_path, "one"))
    consume(topic, other, group=group, **broadcasting(tmp_path, "other"))
    send(topic, numbers(50))
    one.wait(50)
    other.wait(50)
    member.close()
    send(topic, numbers(50, 60))
    consume(topic, again, group=group, **broadcasting(tmp_path, "one"))

    assert sorted((m.body for m in again.wait(10)), key=int) == numbers(50, 60)
    assert sorted((m.body for m in other.wait(60)), key=int) == numbers(60)  # failed ones do not come again


# with others


def test_the_first_offsets_of_a_new_group_are_all_stored(local_cluster, admin, make_topic):
    """Told two of them at the same time, a broker forgets one: often enough to be seen in twenty groups."""
    topic = make_topic()
    queues = admin.fetch_subscribe_queues(topic)
    for _ in range(20):
        config = PullConsumerConfig(name_server=local_cluster.name_server, group=new_group())
        with PullConsumer(config) as consumer:
            consumer.assign(queues)
            wait_until(partial(lambda one: len(one.queues) == len(queues), consumer))
            consumer.commit(dict.fromkeys(queues, 0))

        assert admin.fetch_consumer_offsets(config.group, topic) == dict.fromkeys(queues, 0)
