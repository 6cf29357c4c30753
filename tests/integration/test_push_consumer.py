"""Push consumers on real brokers: what listeners get, what is committed, what comes again."""

import pytest

from rmqtools.errors import BrokerError
from tests.support.cluster_scene import wait_until
from tests.support.listening import Heard, new_group, numbers

pytestmark = pytest.mark.broker


def test_a_condition_on_properties_chooses(consume, send, make_topic):
    topic, heard = make_topic(), Heard()
    for number in range(6):
        send(topic, [b"%d" % number], properties={"n": str(number)})
    consume(topic, heard, sql="n > 2 AND n <> 4")
    heard.wait(2)

    assert sorted(heard.bodies) == [b"3", b"5"]


def test_a_condition_that_a_broker_refuses_fails_the_start(consume, make_topic):
    with pytest.raises(BrokerError, match="parse"):
        consume(make_topic(), Heard(), sql="n >>> 2")


def test_what_fails_too_often_in_order_becomes_a_readable_dead_letter(consume, send, make_topic, admin):
    def fail(messages, context):
        context.suspend_current_queue_time = 0.05
        if messages[0].body == b"bad":
            raise ValueError("never")

    topic, group, heard, dead = make_topic(queues=1), new_group(), Heard(fail), Heard()
    send(topic, [b"bad"])
    send(topic, numbers(3))
    consume(topic, heard, group=group, max_reconsume_times=1, orderly=True)
    heard.wait(5)
    dead_letters = f"%DLQ%{group}"
    wait_until(lambda: dead_letters in admin.fetch_topic_list())
    consume(dead_letters, dead)

    (letter,) = dead.wait(1)
    assert (letter.body, letter.properties["RETRY_TOPIC"]) == (b"bad", topic)
    assert [m.reconsume_times for m in heard.messages if m.body == b"bad"] == [0, 1]
