"""Queues shared among readers, and read as a member of a group would: each queue once, or an error."""

import json
from contextlib import ExitStack
from uuid import uuid4

import pytest

import spark_connector
from rmqtools import PushConsumer, PushConsumerConfig
from rmqtools.allocate import AllocateByPins, Pins
from rmqtools.errors import ConfigError
from tests.support.cluster_scene import wait_until


@pytest.fixture(scope="module")
def filled(fill_new):
    """A topic of 4 queues on each of two brokers, 10 messages in each."""
    return fill_new(10, queues=4)


@pytest.fixture
def tasks(batch_reader):
    """``tasks(topic="T")``: what each Spark partition would read."""
    return lambda **options: [partition.value for partition in batch_reader(**options).partitions()]


def test_readers_are_spark_partitions_and_read_every_queue_once(filled, read):
    frame = read(topic=filled, readers=3)
    rows = frame.groupBy("brokerName", "queueId", "queueOffset").count().collect()

    assert frame.rdd.getNumPartitions() == 3
    assert len(rows) == 80
    assert {row["count"] for row in rows} == {1}


def test_a_strategy_of_a_module_that_was_listed_when_spark_started_is_used(filled, read):
    frame = read(topic=filled, readers=2, allocator="tests.spark.plug_ins:AllToTheLast")

    assert [len(rows) for rows in frame.select("queueId").rdd.glom().collect()] in ([0, 80], [80])


def test_a_configured_share_leaves_queues_to_nobody(filled, tasks):
    config = json.dumps({filled: {"broker-a": [0, 1]}})
    options = {"topic": filled, "readers": "1", "allocator": "CONFIG", "allocator.queues": config}

    with pytest.raises(ConfigError, match=r"broker-a/2, .* to no reader"):
        tasks(**options)
    (task,) = tasks(allowUnassigned="true", **options)
    assert [range_.queue.queue_id for range_ in task.ranges] == [0, 1]


def test_reader_ids_are_one_for_each_task_at_a_time(spark):
    assert spark_connector.reader_ids(spark) == ["127.0.0.1@reader-0", "127.0.0.1@reader-1"]


def test_a_task_elsewhere_than_its_reader_id_says_is_told(filled, read_rows, caplog):
    options = {"readerIds": "10.9.8.7@a", "allocator.verifyHost": "warn"}

    rows = read_rows(topic=filled, **options)

    assert len(rows) == 80
    assert "reader='10.9.8.7@a' wanted='10.9.8.7' address='127.0.0.1'" in caplog.text


@pytest.fixture(scope="module")
def members(filled, local_cluster):
    """A group of two that has shared the topic."""
    config = {"name_server": local_cluster.name_server, "group": f"group-{uuid4().hex[:8]}"}
    with ExitStack() as stack:
        pair = [joined(stack, filled, instance_name=name, **config) for name in ("one", "two")]
        wait_until(lambda: all(len(owned(member, filled)) == 4 for member in pair))
        yield config["group"], *pair


def joined(stack, topic, *, strategy=None, **config):
    """A member of a group that consumes a topic until the stack is closed."""
    member = PushConsumer(PushConsumerConfig(rebalance_interval=1.0, **config), strategy=strategy)
    member.subscribe(topic, lambda messages, context: None)
    return stack.enter_context(member)


def owned(member, topic):
    """Its queues but those of the retry topic."""
    return sorted(queue for queue in member.queues if queue.topic == topic)


def test_as_a_member_only_its_own_queues_are_read(filled, tasks, members, caplog):
    group, first, second = members

    plan = tasks(topic=filled, group=group, asMember=first.client_id)

    assert [range_.queue for task in plan for range_ in task.ranges] == owned(first, filled)
    left = owned(second, filled)[0]
    assert f"{filled}/{left.broker_name}/{left.queue_id}" in caplog.text


def test_as_a_member_of_a_group_in_a_namespace_what_it_holds_is_read(local_cluster, admin, tasks, caplog):
    namespace, group = f"ns{uuid4().hex[:6]}", f"group-{uuid4().hex[:8]}"
    admin.create_topic(f"{namespace}%inside", read_queue_nums=4, write_queue_nums=4)
    config = {"name_server": local_cluster.name_server, "group": group, "namespace": namespace}
    with ExitStack() as stack:
        member = joined(stack, "inside", **config)
        wait_until(lambda: len(owned(member, "inside")) == 8)

        tasks(topic="inside", namespace=namespace, group=group, asMember=member.client_id)

    assert "left_unread=''" in caplog.text


def test_as_a_member_by_another_strategy_it_would_own_others(filled, tasks, members, admin):
    group, first, second = members
    ids = sorted((first.client_id, second.client_id))

    plan = tasks(topic=filled, group=group, asMember=ids[1], allocator="AVG_BY_CIRCLE")

    assert [task.ranges[0].queue for task in plan] == admin.fetch_subscribe_queues(filled)[1::2]


def test_as_a_member_nobody_joins_and_nothing_is_committed(filled, tasks, members, admin):
    group, first, second = members

    tasks(topic=filled, group=group, asMember=first.client_id)

    assert admin.fetch_consumer_ids(group) == sorted((first.client_id, second.client_id))


def test_a_member_that_is_none_is_refused_with_those_there_are(filled, tasks, members):
    group, first, _ = members

    with pytest.raises(ConfigError, match="no such member in group") as error:
        tasks(topic=filled, group=group, asMember="10.1.1.1")
    assert first.client_id in str(error.value)
    with pytest.raises(ConfigError, match="several members have that address"):
        tasks(topic=filled, group=group, asMember=first.client_id.partition("@")[0])


IPS = [f"127.0.0.{number}" for number in (11, 12, 13, 14)]


@pytest.fixture(scope="module")
def pinned(filled, local_cluster, admin):
    """A live group of four on four addresses, all of whose queues are pinned to the second."""
    group, strategy = f"staging-{uuid4().hex[:8]}", AllocateByPins(when_absent="nobody")
    config = {"name_server": local_cluster.name_server, "group": group}
    with ExitStack() as stack:
        admin.set_pins(group, Pins(1, ips=(IPS[1],)))
        four = [joined(stack, filled, strategy=strategy, client_ip=ip, **config) for ip in IPS]
        wait_until(lambda: len(admin.fetch_consumer_ids(group)) == 4 and len(owned(four[1], filled)) == 8)
        yield group
    admin.clear_pins(group)


def test_as_the_member_that_is_pinned_all_is_read(filled, read, pinned):
    assert read(topic=filled, group=pinned, asMember="127.0.0.12").count() == 80


def test_as_a_member_that_is_not_pinned_nothing_is_read_and_that_is_said(filled, read_rows, pinned, caplog):
    assert read_rows(topic=filled, group=pinned, asMember="127.0.0.11") == []

    assert "member='127.0.0.11@" in caplog.text
    assert f"left_unread='{filled}/broker-a/0" in caplog.text


def test_by_pins_a_member_would_own_what_the_pins_of_its_group_say(filled, tasks, pinned, admin):
    by_pins = {"topic": filled, "group": pinned, "allocator": "PINS"}

    assert len(tasks(asMember="127.0.0.12", **by_pins)) == 8
    assert tasks(asMember="127.0.0.13", **by_pins) in ([], [None])
