"""What operators see of our consumers and can do to them: by the official mqadmin, and by our Admin."""

import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from rmqtools import Message, MessageQueue, PullConsumer, PullConsumerConfig, PushConsumer
from tests.support.cluster_scene import wait_until
from tests.support.listening import FIRST, Heard, committed, listening, numbers
from tests.support.reading import await_readable

pytestmark = pytest.mark.broker

COUNT = 20


@pytest.fixture
def filled(make_topic, producer, admin) -> str:
    topic = make_topic(queues=1)
    await_readable(admin, [producer.send(Message(topic, body)) for body in numbers(COUNT)])
    return topic


def member(
    name_server: str, group: str, topic: str, listener: Callable[..., Any], **settings: Any
) -> AbstractContextManager[PushConsumer]:
    given: dict[str, Any] = {"group": group, "strategy": "AVG_BY_CIRCLE", "long_poll_timeout": 1.0}
    given |= {"persist_consumer_offset_interval": 0.2}
    return listening(name_server, topic, listener, **given, **settings)


@pytest.mark.slow  # other commands of mqadmin run in make test
def test_mqadmin_shows_that_a_group_has_consumed_everything(mqadmin, local_cluster, group, filled, admin):
    with member(local_cluster.name_server, group, filled, Heard()):
        wait_until(lambda: committed(admin, group, filled) == COUNT)
        shown = mqadmin.run("consumerProgress", "-g", group)

    assert re.search(rf"^{filled} +broker-a +0 +10 +10 ", shown, re.MULTILINE), shown
    assert "Consume Diff Total: 0" in shown


def test_mqadmin_shows_what_a_member_says_of_itself(mqadmin, local_cluster, group, filled):
    heard = Heard()
    with member(local_cluster.name_server, group, filled, heard) as consumer:
        heard.wait(COUNT)
        shown = mqadmin.run("consumerStatus", "-g", group, "-i", consumer.client_id, "-s")

    for expected in (
        r"PROP_CONSUME_TYPE +: CONSUME_PASSIVELY",
        r"PROP_CLIENT_VERSION +: V5_5_0",
        r"PROP_CONSUMEORDERLY +: false",
        r"PROP_RMQTOOLS_STRATEGY +: AVG_BY_CIRCLE",
        rf"Topic: {filled} +ClassFilter: false +SubExpression: \*",
        rf"{filled} +broker-b +0 +10 ",
        r"MainThread +TID:",
    ):
        assert re.search(expected, shown), f"{expected} not in {shown}"


@pytest.mark.slow  # other commands of mqadmin run in make test
def test_mqadmin_finds_two_members_of_a_group_in_order(mqadmin, local_cluster, group, filled):
    heard = Heard()
    with (
        member(local_cluster.name_server, group, filled, heard, instance_name="one") as first,
        member(local_cluster.name_server, group, filled, heard, instance_name="two") as second,
    ):
        wait_until(lambda: [len(topic_queues(each, filled)) for each in (first, second)] == [1, 1])
        shown = mqadmin.run("consumerStatus", "-g", group)

    assert first.client_id in shown
    assert second.client_id in shown
    assert "Same subscription in the same group of consumer" in shown
    assert "Rebalance OK" in shown


def topic_queues(consumer: PushConsumer, topic: str) -> list[MessageQueue]:
    return [queue for queue in consumer.queues if queue.topic == topic]


@pytest.mark.slow  # other commands of mqadmin run in make test
def test_mqadmin_lets_a_member_consume_one_message_once_more(mqadmin, local_cluster, group, filled, producer):
    heard = Heard()
    with member(local_cluster.name_server, group, filled, heard) as consumer:
        sent = producer.send(Message(filled, b"again"))
        heard.wait(COUNT + 1)
        shown = mqadmin.run(
            "queryMsgById", "-i", sent.offset_msg_id, "-g", group, "-d", consumer.client_id, "-t", filled
        )

    assert heard.bodies.count(b"again") == 2
    assert "consumeResult=CR_SUCCESS" in shown


def test_our_admin_sees_a_member_with_queues_strategy_and_rates(local_cluster, group, filled, admin):
    heard = Heard()
    with member(local_cluster.name_server, group, filled, heard) as consumer:
        heard.wait(COUNT)
        info = admin.fetch_running_info(group, consumer.client_id)
        (seen,) = admin.fetch_group(group).members

    status = info.status_table[filled]
    assert (seen.client_id, seen.strategy, seen.error) == (consumer.client_id, "AVG_BY_CIRCLE", None)
    assert len([queue for queue in seen.queues if queue.topic == filled]) == 2
    assert status.pull_tps > 0
    assert status.consume_ok_tps == pytest.approx(status.pull_tps)
    assert status.consume_failed_msgs == 0


def test_a_pull_consumer_tells_its_state_and_follows_a_reset(local_cluster, group, filled, admin):
    config = PullConsumerConfig(
        name_server=local_cluster.name_server,
        group=group,
        consume_from=FIRST,
        long_poll_timeout=1.0,
        auto_commit_interval=0.1,
    )
    bodies: Counter[bytes] = Counter()
    with PullConsumer(config) as consumer:
        consumer.subscribe(filled)
        poll_until(consumer, bodies, 1)
        info = admin.fetch_running_info(group, consumer.client_id)
        admin.reset_offsets(group, filled, 0)
        poll_until(consumer, bodies, 2)

    assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"
    assert len(info.mq_table) == 2
    assert set(bodies.values()) == {2}


def poll_until(consumer: PullConsumer, bodies: Counter[bytes], times: int) -> None:
    deadline = time.monotonic() + 20
    while len(bodies) < COUNT or min(bodies.values()) < times:
        assert time.monotonic() < deadline, bodies
        bodies.update(message.body for message in consumer.poll(0.5))
