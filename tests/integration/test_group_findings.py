"""Findings of ``rmqtools group check`` on a real cluster: each situation is made, and found."""

import asyncio
import json
import os
import signal
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from rmqtools import (
    Admin,
    ClientConfig,
    Message,
    MessageQueue,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    aio,
)
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.engine.admin.groups import GroupAdmin
from rmqtools.group import GroupLimits
from tests.support.cluster_scene import pid_of, wait_until
from tests.support.command_line import rmqtools
from tests.support.patience import PATIENCE
from tests.support.reading import await_readable

pytestmark = pytest.mark.broker

FIRST: dict[str, Any] = {"consume_from": "CONSUME_FROM_FIRST_OFFSET"}
SOON = GroupLimits(listener=1, fetch=1)
LOST_CONNECTIONS = 5  # a broker that goes on handles the heartbeats of some of them after their end


def found(admin: Admin, group: str, limits: GroupLimits = SOON) -> dict[str, str]:
    """The findings of a group: texts by kind."""
    texts: dict[str, str] = {}
    for one in admin.check_group(group, limits=limits).findings:
        texts[one.kind.value] = f"{texts.get(one.kind.value, '')}{one.text}\n"
    return texts


def await_finding(admin: Admin, group: str, kind: str, *, naming: str = "") -> str:
    """Wait until something is found whose text has ``naming``, and return its text."""
    seen: dict[str, str] = {}
    wait_until(lambda: seen.update(found(admin, group)) or (kind in seen and naming in seen[kind]))
    return seen[kind]


def fetches_nothing(admin: Admin, group: str, topic: str) -> bool:
    view = admin.fetch_group(group)
    states = [(queue.topic, state) for one in view.members for queue, state in one.states.items()]
    pulls = [state.last_pull_timestamp for name, state in states if name == topic]
    return bool(pulls) and view.now_ms - max(pulls) > 6000  # a broker looks at held pulls every 5 s


def owners(*members: PushConsumer, topic: str) -> list[MessageQueue]:
    return sorted(queue for member in members for queue in member.queues if queue.topic == topic)


def test_a_broadcasting_member_of_a_clustering_group(make_topic, admin, group, join, tmp_path):
    topic, file = make_topic(queues=2), str(tmp_path / "offsets.json")
    join(topic, instance_name="one")
    join(topic, instance_name="two", message_model="BROADCASTING", offset_store_path=file)

    assert "BROADCASTING: 127.0.0.1@two" in await_finding(admin, group, "models_differ")


def test_two_processes_with_one_client_id_share_the_queues_and_are_named(
    make_topic, admin, group, join, caplog
):
    topic = make_topic(queues=4)
    every = sorted(admin.fetch_subscribe_queues(topic))
    members = [join(topic, instance_name="same", rebalance_interval=1.0) for _ in range(2)]
    wait_until(lambda: owners(*members, topic=topic) == every)

    text = await_finding(admin, group, "client_id_shared")
    assert "127.0.0.1@same is listed more than once: broker-a from 127.0.0.1:" in text
    assert "give each process its own instance_name" in text
    assert "client_id_shared" in caplog.text


def test_a_listener_that_never_returns_is_found_and_all_commands_say_the_same_lag(
    make_topic, admin, group, join, producer, local_cluster
):
    topic = make_topic(queues=1)
    for number in range(20):
        producer.send(Message(topic, b"%d" % number), queue=MessageQueue(topic, "broker-a", 0))
    end = Event()
    variables = {"NAMESRV_ADDR": local_cluster.name_server}
    try:
        join(topic, lambda messages, context: end.wait(60), consume_threads=2)
        wait_until(lambda: "20 fetched messages of queue" in await_finding(admin, group, "listener_slow"))
        slow = found(admin, group)
        listed = json.loads(rmqtools("group", "list", "--json", **variables).stdout)
        shown = json.loads(rmqtools("group", "show", group, "--json", **variables).stdout)
        look = json.loads(rmqtools("group", "watch", group, "--looks", "1", "--json", **variables).stdout)
    finally:
        end.set()

    assert [*slow] == ["listener_slow"]
    assert "look at the stacks of its threads" in slow["listener_slow"]
    assert next(row["lag"] for row in listed if row["group"] == group) == 20
    assert (sum(queue["lag"] for queue in shown["queues"]), look["lag"]) == (20, 20)


def test_a_member_that_fails_is_found_with_its_last_error(make_topic, admin, group, join, producer):
    topic = make_topic(queues=1)

    def fail(messages: object, context: object) -> None:
        raise KeyError("no such order")

    join(topic, fail)
    producer.send(Message(topic, b"x"))

    assert "KeyError('no such order')" in await_finding(admin, group, "member_fails")


def test_a_queue_that_waits_for_a_failing_message(make_topic, admin, group, join, producer):
    topic = make_topic(queues=1)
    join(topic, lambda messages, context: False, orderly=True, suspend_current_queue_time=0.2)
    sent = producer.send(Message(topic, b"poison"))

    text = await_finding(admin, group, "queue_blocked")
    assert f"waits for offset {sent.queue_offset}, which failed" in text


def test_a_member_that_holds_a_queue_and_does_not_fetch(make_topic, admin, group, producer, local_cluster):
    topic = make_topic(queues=1)
    config = PullConsumerConfig(
        name_server=local_cluster.name_server, group=group, long_poll_timeout=0.5, **FIRST
    )
    with PullConsumer(config) as consumer:
        consumer.subscribe(topic)
        wait_until(lambda: len(consumer.assignment()) == 2)
        consumer.pause(consumer.assignment())
        wait_until(lambda: fetches_nothing(admin, group, topic))  # the last long poll has ended
        await_readable(admin, [producer.send(Message(topic, b"x"))])

        assert "has not fetched for" in await_finding(admin, group, "queue_not_fetched")


def test_retry_queues_that_no_route_shows_are_found_and_the_call_that_makes_them_shows_them(
    make_topic, admin, group, join, monkeypatch
):
    join(make_topic(queues=1))
    wait_until(lambda: any(queue.topic.startswith("%RETRY%") for queue in admin.fetch_group(group).progress))

    async def leave_it(self: object, hidden: object) -> None: ...

    with monkeypatch.context() as before:
        before.setattr(GroupAdmin, "_widen", leave_it)
        admin.create_group(group, retry_queue_nums=4)
    text = await_finding(admin, group, "retry_queues_unreadable")
    admin.create_group(group, retry_queue_nums=4)

    assert "1 queue to read and 4 to write on broker-a" in text
    wait_until(lambda: "retry_queues_unreadable" not in found(admin, group))


class ClockSetBack:
    """The system's clock, an hour ago."""

    def now_ms(self) -> int:
        return SYSTEM_CLOCK.now_ms() - 3_600_000

    def monotonic(self) -> float:
        return SYSTEM_CLOCK.monotonic()

    def nanos(self) -> int:
        return SYSTEM_CLOCK.nanos()


def test_an_old_subscription_that_brokers_keep_because_a_clock_was_set_back(
    make_topic, client_config, group, local_cluster
):
    topic = make_topic()
    config = PushConsumerConfig(name_server=local_cluster.name_server, group=group, request_timeout=PATIENCE)

    async def listen(*_: object) -> None:
        """Receive nothing."""

    async def find() -> list[str]:
        old = aio.PushConsumer(replace(config, instance_name="old"))
        old.subscribe(topic, listen, tags="old")
        new = aio.PushConsumer._with_clock(replace(config, instance_name="new"), ClockSetBack())
        new.subscribe(topic, listen, tags="new")
        async with aio.Admin(client_config) as admin, old, new:
            await old.close()
            return [each.text for each in (await admin.check_group(group)).findings]

    found = asyncio.run(find())

    text = f"filters topic {topic!r} by 'old' and ignores 'new' of the members, which is 3"
    assert any(text in each for each in found), found
    assert any(
        each.startswith("the clock of member ") and " 3600 s behind those" in each for each in found
    ), found


def test_a_member_that_a_broker_lists_again_after_it_stood_still_keeps_all_queues(
    own_cluster, group, join, caplog
):
    where, topic = {"name_server": own_cluster.name_server}, "orders"
    with Admin(ClientConfig(**where)) as admin:
        admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
        every = sorted(admin.fetch_subscribe_queues(topic))
        often = {"heartbeat_broker_interval": 0.1, "request_timeout": 1.0, "rebalance_interval": 1.0}
        member = join(topic, **where, **often)
        wait_until(lambda: owners(member, topic=topic) == every)
        sick = pid_of(own_cluster, "broker-a")
        os.kill(sick, signal.SIGSTOP)
        try:
            wait_until(lambda: caplog.text.count("heartbeat_failed broker='broker-a'") >= LOST_CONNECTIONS)
        finally:
            os.kill(sick, signal.SIGCONT)
        text = await_finding(admin, group, "member_listed_again", naming="broker-a from")

    assert f"client id {member.client_id} is listed more than once: broker-a from 127.0.0.1:" in text
    assert "it forgets closed connections within two minutes" in text
    assert owners(member, topic=topic) == every
