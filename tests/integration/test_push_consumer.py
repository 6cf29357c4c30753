"""Push consumers on real brokers: what listeners get, what is committed, what comes again."""

import threading
from collections import defaultdict

import pytest

from rmqtools import (
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyStatus,
    Message,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import BrokerError
from tests.support.cluster_scene import wait_until
from tests.support.listening import FACES, Heard, committed, new_group, numbers
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.broker

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("orderly", [False, True], ids=["concurrently", "orderly"])
def test_every_message_is_heard_once_also_by_those_who_come_after_a_restart(
    consume, send, make_topic, admin, face, orderly
):
    topic, group, first, second = make_topic(), new_group(), Heard(), Heard()
    send(topic, numbers(100))
    consumer = consume(topic, first, face=face, group=group, orderly=orderly)
    first.wait(100)
    send(topic, numbers(100, 150))
    first.wait(150)
    consumer.close()

    assert committed(admin, group, topic) == 150
    send(topic, numbers(150, 200))
    consume(topic, second, face=face, group=group, orderly=orderly)
    assert sorted(second.wait(50), key=lambda one: int(one.body))[0].body == b"150"
    assert sorted(first.bodies + second.bodies, key=int) == numbers(200)
    assert {message.topic for message in first.messages} == {topic}


def test_each_topic_has_its_own_listener_and_tags_choose(local_cluster, send, make_topic):
    one, other, heard, other_heard = make_topic(), make_topic(), Heard(), Heard()
    for tags in ("a", "b", "c"):
        send(one, [tags.encode()], tags=tags)
        send(other, [b"other " + tags.encode()], tags=tags)
    config = PushConsumerConfig(
        name_server=local_cluster.name_server, group=new_group(), consume_from="CONSUME_FROM_FIRST_OFFSET"
    )
    consumer = PushConsumer(config)
    consumer.subscribe(one, heard, tags="a || c")
    consumer.subscribe(other, other_heard)
    with consumer:
        heard.wait(2)
        other_heard.wait(3)

    assert sorted(heard.bodies) == [b"a", b"c"]
    assert sorted(other_heard.bodies) == [b"other a", b"other b", b"other c"]


def test_a_condition_on_properties_chooses(consume, send, make_topic):
    topic, heard = make_topic(), Heard()
    for number in range(6):
        send(topic, [b"%d" % number], properties={"n": str(number)})
    consume(topic, heard, sql="n > 2 AND n <> 4")
    heard.wait(2)

    assert sorted(heard.bodies) == [b"3", b"5"]


def test_a_condition_that_a_broker_refuses_fails_the_start(consume, make_topic, admin, local_cluster):
    topic = make_topic()
    with pytest.raises(BrokerError, match="parse"):
        consume(topic, Heard(), sql="n >>> 2")

    def set_filter(value):
        for addr in local_cluster.broker_addrs.values():
            admin.update_broker_config(addr, {"enablePropertyFilter": value})

    set_filter("false")
    try:
        with pytest.raises(BrokerError, match="does not support consumer to filter message by SQL92"):
            consume(topic, Heard(), sql="n > 2")
    finally:
        set_filter("true")
    consume(topic, Heard(), sql="n > 2")


def test_batches_are_as_large_as_may_be_and_of_one_queue(consume, send, make_topic):
    topic, heard = make_topic(), Heard()
    send(topic, numbers(300))
    consume(topic, heard, consume_message_batch_max_size=16)
    heard.wait(300)

    assert max(map(len, heard.batches)) == 16
    assert all(len({(m.broker_name, m.queue_id) for m in batch}) == 1 for batch in heard.batches)


def test_blocking_listeners_run_at_once_on_their_own_threads(consume, send, make_topic):
    together = threading.Barrier(4)
    topic, heard = make_topic(), Heard(lambda messages, context: together.wait(PATIENCE) and None)
    send(topic, numbers(4))
    consume(topic, heard, consume_threads=4)
    heard.wait(4)

    assert len(heard.threads) == 4
    assert all(name.startswith("rmqtools-listener") for name in heard.threads)


@pytest.mark.parametrize("face", FACES)
def test_a_failed_message_comes_again_after_its_delay_as_of_its_own_topic(consume, send, make_topic, face):
    at = []

    def fail_twice(messages, context):
        at.append(SYSTEM_CLOCK.monotonic())
        context.delay_level_when_next_consume = 1
        if messages[0].reconsume_times < 2:
            raise ValueError("not yet")

    topic, heard = make_topic(), Heard(fail_twice)
    (result,) = send(topic, [b"x"])
    consume(topic, heard, face=face)
    heard.wait(3)

    assert [message.reconsume_times for message in heard.messages] == [0, 1, 2]
    assert {(message.topic, message.msg_id, message.body) for message in heard.messages} == {
        (topic, result.msg_id, b"x")
    }
    assert at[1] - at[0] >= 0.9


def test_only_what_is_behind_the_ack_index_comes_again(consume, send, make_topic):
    def accept_two(messages, context):
        context.delay_level_when_next_consume = 1
        context.ack_index = 1 if len(messages) == 4 else 10

    topic, heard = make_topic(queues=1, broker_names=["broker-a"]), Heard(accept_two)
    send(topic, numbers(4))
    consume(topic, heard, consume_message_batch_max_size=4)
    heard.wait(6)

    assert sorted(heard.bodies[4:]) == [b"2", b"3"]


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrently", "orderly"])
def test_what_fails_too_often_becomes_a_readable_dead_letter(consume, send, make_topic, admin, orderly):
    def fail(messages, context):
        context.delay_level_when_next_consume = 1
        context.suspend_current_queue_time = 0.05
        if messages[0].body == b"bad":
            raise ValueError("never")

    topic, group, heard, dead = make_topic(queues=1), new_group(), Heard(fail), Heard()
    send(topic, [b"bad"])
    send(topic, numbers(3))
    consume(topic, heard, group=group, max_reconsume_times=1, orderly=orderly)
    heard.wait(5)
    dead_letters = f"%DLQ%{group}"
    wait_until(lambda: dead_letters in admin.fetch_topic_list())
    consume(dead_letters, dead)

    (letter,) = dead.wait(1)
    assert (letter.body, letter.properties["RETRY_TOPIC"]) == (b"bad", topic)
    assert [m.reconsume_times for m in heard.messages if m.body == b"bad"] == [0, 1]


def test_minus_one_makes_a_dead_letter_at_once(consume, send, make_topic, admin):
    def give_up(messages, context):
        context.delay_level_when_next_consume = -1
        return LATER

    topic, group, dead = make_topic(), new_group(), Heard()
    send(topic, [b"x"])
    consume(topic, Heard(give_up), group=group)
    wait_until(lambda: f"%DLQ%{group}" in admin.fetch_topic_list())
    consume(f"%DLQ%{group}", dead)

    assert dead.wait(1)[0].body == b"x"


def test_in_order_a_failed_batch_comes_again_before_anything_behind_it(consume, producer, make_topic):
    failing = {b"3": 2, b"7": 1}

    def fail_some(messages, context):
        context.suspend_current_queue_time = 0.1
        for message in messages:
            if failing.get(message.body, 0) > 0:
                failing[message.body] -= 1
                return SUSPEND
        return ConsumeOrderlyStatus.SUCCESS

    topic, heard = make_topic(queues=2), Heard(fail_some)
    for body in numbers(12):
        producer.send_orderly(Message(topic, body, sharding_key="key"))
    consume(topic, heard, orderly=True)
    heard.wait(15)

    assert heard.bodies == [b"%d" % n for n in (0, 1, 2, 3, 3, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11)]


def test_in_order_every_queue_is_heard_in_its_order_on_many_threads(consume, send, make_topic):
    topic, heard = make_topic(), Heard()
    send(topic, numbers(400))
    consume(topic, heard, orderly=True, consume_message_batch_max_size=3)
    heard.wait(400)
    by_queue = defaultdict(list)
    for message in heard.messages:
        by_queue[message.broker_name, message.queue_id].append(message.queue_offset)
    assert len(by_queue) == 8
    assert all(offsets == list(range(len(offsets))) for offsets in by_queue.values())


def test_a_listener_that_takes_too_long_loses_its_message_to_the_retry_topic(
    consume, send, make_topic, admin, caplog, gate
):
    topic, group, heard = make_topic(), new_group(), Heard(lambda *_: gate.wait(PATIENCE) and None)
    send(topic, [b"x"])
    consumer = consume(topic, heard, group=group, consume_timeout=0.3, persist_consumer_offset_interval=0.2)
    heard.wait(1)
    wait_until(lambda: committed(admin, group, topic) == 1)
    gate.set()
    consumer.close()

    assert "listener_timed_out" in caplog.text


def test_a_blocking_listener_that_wants_to_exit_the_process_fails_like_any_other(consume, send, make_topic):
    def leave(messages, context):
        context.delay_level_when_next_consume = 1
        if messages[0].reconsume_times == 0:
            raise (SystemExit if messages[0].body == b"0" else StopIteration)

    topic, heard = make_topic(), Heard(leave)
    send(topic, numbers(2))
    consume(topic, heard)

    assert sorted(message.reconsume_times for message in heard.wait(4)) == [0, 0, 1, 1]
