"""Push consumers on real brokers: closing, beginning, changing topics, broadcasting, answering requests."""

import asyncio
import threading
import uuid
from functools import partial

import pytest

from rmqtools import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    create_reply,
)
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError
from tests.support.cluster_scene import wait_until
from tests.support.listening import FACES, Heard, committed, new_group, numbers

pytestmark = pytest.mark.broker

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER


def test_a_suspended_consumer_hears_nothing_new_until_it_is_resumed(consume, send, make_topic):
    topic, heard = make_topic(), Heard()
    consumer = consume(topic, heard, long_poll_timeout=0.5, pull_timeout=10.0)
    send(topic, numbers(8))
    heard.wait(8)
    consumer.suspend()
    send(topic, numbers(8, 200))
    connections = consumer._consumer._client.remoting._open
    # pulls that brokers hold already are still answered, one for each queue
    wait_until(lambda: not any(one._pending for one in list(connections.values())))
    assert len(heard.messages) < 200
    consumer.resume()
    heard.wait(200)


def test_while_listeners_block_no_more_is_held_than_the_limits_and_one_pull(consume, send, make_topic, gate):
    topic, heard = make_topic(queues=1, broker_names=["broker-a"]), Heard(lambda *_: gate.wait(60) and None)
    send(topic, [b"%1000d" % n for n in range(600)])
    consumers = [
        consume(topic, heard, consume_threads=2, **limit)
        for limit in (
            {"pull_threshold_for_queue": 50},
            {"pull_threshold_bytes_for_queue": 50_000},
            {"consume_concurrently_max_span": 50},
        )
    ]

    def held(consumer):
        table = consumer._consumer._member.held.pulled
        return max((one.count for one in list(table.values())), default=0)

    wait_until(lambda: all(held(consumer) > 50 for consumer in consumers))
    assert [held(consumer) <= 50 + 32 for consumer in consumers] == [True] * 3
    gate.set()
    heard.wait(3 * 600)


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrently", "orderly"])
def test_closing_waits_for_listeners_and_after_a_restart_nothing_is_missing_or_comes_twice(
    consume, send, make_topic, orderly
):
    begun = threading.Event()

    def slowly(messages, context):
        begun.set()
        threading.Event().wait(0.02)

    topic, group, first, second = make_topic(), new_group(), Heard(slowly), Heard()
    send(topic, numbers(200))
    consumer = consume(topic, first, group=group, orderly=orderly, consume_threads=3)
    assert begun.wait(20)
    consumer.close()
    assert 0 < len(first.messages) < 200

    consume(topic, second, group=group, orderly=orderly)
    second.wait(200 - len(first.messages))
    assert sorted(first.bodies + second.bodies, key=int) == numbers(200)


def test_a_listener_that_outlasts_close_timeout_is_left_alone_and_its_message_comes_again(
    consume, send, make_topic, caplog, gate
):
    topic, group, second = make_topic(), new_group(), Heard()
    stuck = Heard(lambda *_: gate.wait(60) and None)
    send(topic, [b"x"])
    consumer = consume(topic, stuck, group=group, close_timeout=0.3)
    stuck.wait(1)
    began = SYSTEM_CLOCK.monotonic()
    consumer.close()
    took = SYSTEM_CLOCK.monotonic() - began

    assert 0.3 <= took < 20  # far below the listener's 60 s
    assert "listeners_still_running" in caplog.text
    consume(topic, second, group=group)
    second.wait(1)


# where to begin


@pytest.mark.parametrize("consume_from", list(ConsumeFromWhere))
def test_a_group_without_offsets_begins_a_young_queue_at_its_first_message(
    consume, send, make_topic, consume_from
):
    """As with the Java client: while its first message is in the broker's memory, the broker answers 0."""
    topic, heard = make_topic(), Heard()
    send(topic, numbers(3))
    consume(topic, heard, consume_from=consume_from)

    heard.wait(3)


def test_topics_come_and_go_while_the_consumer_runs(consume, send, make_topic, admin):
    one, other, group, heard, other_heard = make_topic(), make_topic(), new_group(), Heard(), Heard()
    consumer = consume(one, heard, group=group)
    consumer.subscribe(other, other_heard)
    send(other, numbers(10))
    other_heard.wait(10)
    consumer.unsubscribe(one)
    wait_until(lambda: {queue.topic for queue in consumer.queues} == {other, f"%RETRY%{group}"})
    send(one, numbers(10))
    consumer.subscribe(one, heard, tags="none")
    consumer.subscribe(one, heard)

    assert sorted(message.body for message in heard.wait(10)) == numbers(10)


def test_the_offsets_of_an_unsubscribed_topic_are_stored_at_once(consume, send, make_topic, admin):
    topic, other, group, heard = make_topic(), make_topic(), new_group(), Heard()
    consumer = consume(topic, heard, group=group, persist_consumer_offset_interval=600.0)
    consumer.subscribe(other, Heard())
    send(topic, numbers(10))
    heard.wait(10)
    consumer.unsubscribe(topic)

    wait_until(lambda: committed(admin, group, topic) == 10)


def test_a_topic_that_is_made_after_the_start_is_heard(consume, send, admin):
    topic, heard = f"test-{uuid.uuid4().hex[:12]}", Heard()
    consume(topic, heard)
    admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
    send(topic, numbers(10))

    assert sorted(message.body for message in heard.wait(10)) == numbers(10)


def test_a_condition_on_a_topic_that_is_not_there_yet_does_not_fail_the_start(consume, send, admin):
    topic, heard = f"test-{uuid.uuid4().hex[:12]}", Heard()
    consume(topic, heard, sql="n > 1")
    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
    send(topic, [b"x"], properties={"n": "2"})

    heard.wait(1)


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


def test_broadcasting_a_torn_offset_file_is_replaced_by_its_backup(consume, send, make_topic, tmp_path):
    topic, group, settings = make_topic(), new_group(), broadcasting(tmp_path, "one")
    path = tmp_path / "one.json"
    for bounds in ((0, 10), (10, 20)):
        heard = Heard()
        member = consume(topic, heard, group=group, **settings)
        send(topic, numbers(*bounds))
        heard.wait(10)
        member.close()
    path.write_bytes(path.read_bytes()[:20])
    heard = Heard()
    consume(topic, heard, group=group, **settings).close()

    backup = path.with_name("one.json.bak")
    path.write_bytes(b"{")
    backup.write_bytes(b"")
    with pytest.raises(ConfigError, match=r"one\.json and its backup are unreadable: mend or remove them"):
        consume(topic, heard, group=group, **settings)


# with others


@pytest.mark.parametrize("face", FACES)
def test_a_consumer_answers_requests(consume, producer, make_topic, face):
    topic = make_topic()

    def reply(messages):
        for message in messages:
            producer.send(create_reply(message, b"re: " + message.body))

    def listen(messages, context):  # a loop must not wait for a blocking producer, so a thread does
        return reply(messages) if face == "blocking" else asyncio.to_thread(reply, messages)

    consumer = consume(topic, Heard(listen), face=face)

    assert producer.request(Message(topic, b"question"), timeout=20).body == b"re: question"
    consumer.close()  # waits for the listener, whose send may still be waiting for its own answer


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
