"""Push consumers on real brokers: what listeners get, what is committed, what comes again."""

from collections import defaultdict

import pytest

from rmqtools.errors import BrokerError
from tests.support.cluster_scene import wait_until
from tests.support.listening import FACES, Heard, committed, new_group, numbers

pytestmark = pytest.mark.broker


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
