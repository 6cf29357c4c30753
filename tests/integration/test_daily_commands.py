"""The daily commands on real brokers, in this process: what the fake cluster answers, these answer too."""

import json
import uuid

import pytest
from typer.testing import CliRunner

from rmqtools import (
    Admin,
    ClientConfig,
    ConsumeConcurrentlyStatus,
    LocalTransactionState,
    Message,
    MessageQueue,
    ProducerConfig,
    TransactionProducer,
)
from rmqtools.cli import app
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE
from tests.support.reading import await_stored

pytestmark = pytest.mark.broker

RETENTION = "72 hours"


def commands_of(cluster):
    def run(*arguments, stdin=None, code=0):
        runner = CliRunner(env={"NAMESRV_ADDR": cluster.name_server})
        result = runner.invoke(app, [*map(str, arguments)], input=stdin, catch_exceptions=False)
        assert code in (None, result.exit_code), result.output
        return result.stdout

    return run


@pytest.fixture
def run(local_cluster):
    return commands_of(local_cluster)


@pytest.fixture
def topic():
    return f"test-{uuid.uuid4().hex[:12]}"


def test_a_topic_is_created_described_altered_and_deleted(run, admin, topic):
    run("topic", "create", topic, "--queues", 2, "--type", "FIFO", "--broker", "broker-a")
    run("topic", "alter", topic, "--write-queues", 1, "--type", "DELAY")
    described = json.loads(run("topic", "describe", topic, "--json"))
    listed = {row["topic"]: row for row in json.loads(run("topic", "list", "--json"))}
    run("topic", "delete", topic, "--yes")

    assert (described["message_type"], described["retention"]) == (["DELAY"], [RETENTION])
    assert [row["note"] for row in described["queues"]] == ["", "not writable"]
    assert (listed[topic]["read_queues"], listed[topic]["write_queues"], listed[topic]["perm"]) == (
        2,
        1,
        "rw",
    )
    assert topic not in admin.fetch_topic_list()


def test_lines_go_in_and_come_out_and_a_message_is_found_by_each_name(run, admin, topic):
    run("topic", "create", topic, "--queues", 1, "--broker", "broker-a")
    lines = "\n".join(json.dumps({"body": f"m{n}", "keys": [f"k{n}"], "tags": f"t{n % 2}"}) for n in range(4))
    summary = json.loads(run("produce", topic, "--format", "json", "--json", stdin=lines))
    admin.await_readable({MessageQueue(topic, "broker-a", 0): 4}, timeout=PATIENCE)
    rows = [json.loads(line) for line in run("consume", topic, "--format", "json").splitlines()]
    wait_until(lambda: admin.query_messages(topic, "k3"))
    found = [
        json.loads(run("message", "get", *name, "--json"))[0]
        for name in (
            ("--id", rows[3]["offset_msg_id"]),
            (topic, "--key", "k3"),
            (topic, "--unique-key", rows[3]["msg_id"]),
        )
    ]

    assert (summary["stored"], summary["unknown"], summary["failed"]) == (4, 0, 0)
    assert [row["body"] for row in rows] == ["m0", "m1", "m2", "m3"]
    assert run("consume", topic, "--tags", "t1", "-f", r"%o %k\n") == "1 k1\n3 k3\n"
    assert run("consume", topic, "--last", 1) == "m3\n"
    assert [row["body"] for row in found] == ["m3"] * 3


def test_a_group_consumes_is_tracked_reset_and_deleted(run, admin, topic):
    group = f"group-{topic}"
    queue = MessageQueue(topic, "broker-a", 0)
    run("topic", "create", topic, "--queues", 1, "--broker", "broker-a")
    run("produce", topic, stdin="a\nb\nc\n")
    admin.await_readable({queue: 3}, timeout=PATIENCE)

    first = run("consume", topic, "-g", group, "--from", "earliest", "--count", 2)
    listed = {row["group"]: row for row in json.loads(run("group", "list", "--json"))}
    row = json.loads(run("consume", topic, "--count", 1, "--format", "json"))
    message = admin.view_message(row["offset_msg_id"])
    track = {each.consumer_group: each.track_type for each in admin.fetch_message_track(message)}
    wait_until(lambda: admin.fetch_consumer_ids(group) == [])
    would = json.loads(run("group", "reset", group, "-t", topic, "--to-earliest", "--dry-run", "--json"))
    run("group", "reset", group, "-t", topic, "--to-offset", "1", "--yes")
    offsets = admin.fetch_consumer_offsets(group, topic)
    run("group", "delete", group, "--yes")

    assert first == "a\nb\n"
    assert listed[group]["lag"] >= 1
    assert track == {group: "CONSUMED"}
    assert (would[0]["before"], would[0]["after"], would[0]["difference"]) == (2, 0, -2)
    assert offsets == {queue: 1}
    assert group not in admin.fetch_group_list()


def test_a_delayed_message_is_there_with_the_time_of_its_delivery(run, topic, producer):
    run("topic", "create", topic, "--queues", 1, "--broker", "broker-a")
    sent = producer.send(Message(topic, b"later", keys="k", delay_level=18))
    wait_until(lambda: "later" in run("message", "get", topic, "--id", sent.msg_id, code=None))
    names = (
        ("--id", sent.offset_msg_id),
        (topic, "--id", f"msgId={sent.msg_id.lower()},"),
        (topic, "--key", "k"),
    )

    for name in names:
        (row,) = json.loads(run("message", "get", *name, "--json"))
        assert (row["topic"], row["body"], row["state"]["state"]) == (topic, "later", "DELAYED")
        assert abs(row["state"]["until_ms"] - row["born_timestamp_ms"] - 7200_000) < 60_000


@pytest.mark.parametrize(
    ("level", "state"), [(18, "WAITS_FOR_RETRY"), (-1, "DEAD_LETTER")], ids=["retry", "dead-letter"]
)
def test_a_message_that_failed_is_shown_where_it_waits(run, topic, consume, level, state):
    group = f"group-{topic}"

    def listen(messages, context):
        context.delay_level_when_next_consume = level
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    run("topic", "create", topic, "--queues", 1, "--broker", "broker-a")
    run("produce", topic, "--format", "json", stdin='{"body": "bad", "keys": "k"}')
    consume(topic, listen, group=group)
    get = ("message", "get", topic, "--key", "k", "--json")
    wait_until(lambda: any(one.get("failed") for one in json.loads(run(*get, code=None) or "[]")))
    (row,) = json.loads(run(*get))

    assert (row["failed"][group]["state"], row["state"]) == (state, None)
    assert row["failed"][group]["until_ms"] is not None or state == "DEAD_LETTER"
    assert group in run(*get[:-1])


def test_brokers_have_numbers_settings_and_are_healthy(own_cluster):
    run = commands_of(own_cluster)
    rows = json.loads(run("broker", "status", "--json"))
    config = ("broker", "config", "broker-a")
    before = json.loads(run(*config, "--match", "defaultQueryMaxNum", "--json"))["defaultQueryMaxNum"]
    run(*config, "-c", "defaultQueryMaxNum=33", "--yes")
    after = json.loads(run(*config, "--match", "defaultQueryMaxNum", "--json"))["defaultQueryMaxNum"]
    run(*config, "-c", f"defaultQueryMaxNum={before}", "--yes")

    assert [row["version"] for row in rows] == ["V5_5_0", "V5_5_0"]
    assert all(0 <= row["disk_percent"] <= 100 and row["send_queue"] == 0 for row in rows)
    assert (before, after) == ("32", "33")
    assert run("health") == "healthy: 2 brokers, 2 masters\n"


def test_a_broker_is_drained_and_takes_messages_again(own_cluster, topic):
    run = commands_of(own_cluster)
    run("topic", "create", topic, "--queues", 1)
    drained = run("broker", "drain", "broker-b", "--yes", "--interval", 1, "--timeout", PATIENCE)
    noted = {row["broker_name"]: row["note"] for row in json.loads(run("broker", "status", "--json"))}
    health = run("health", code=1)
    run("produce", topic, stdin="".join(f"{n}\n" for n in range(8)))
    with Admin(ClientConfig(name_server=own_cluster.name_server)) as admin:
        await_stored(admin, topic, 8)
        ends = admin.fetch_topic_stats(topic).offset_table
    undrained = run("broker", "undrain", "broker-b")

    assert drained.splitlines()[0].startswith("broker broker-b is read-only")
    assert "nothing came in; waiting: nothing" in drained
    assert noted == {"broker-a": "", "broker-b": "read-only"}
    assert health == "unhealthy: broker-b (master): read-only\n"
    assert {queue.broker_name for queue, offsets in ends.items() if offsets.max_offset} == {"broker-a"}
    assert undrained.startswith("broker broker-b is writable")
    assert run("health") == "healthy: 2 brokers, 2 masters\n"


def test_a_half_message_waits_on_its_broker_until_it_is_decided(admin, local_cluster, topic):
    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])
    waiting = []

    def half():
        return admin.fetch_broker_backlog("broker-a", topics=[], groups=[]).half

    class Listener:
        def execute_local_transaction(self, message, arg):
            wait_until(lambda: half() >= 1)
            waiting.append(message)
            return LocalTransactionState.COMMIT_MESSAGE

        def check_local_transaction(self, message):
            return LocalTransactionState.COMMIT_MESSAGE

    config = ProducerConfig(name_server=local_cluster.name_server, group=f"group-{topic}")
    of_others = half()
    with TransactionProducer(config, Listener()) as producer:
        producer.send_message_in_transaction(Message(topic, b"x"))

    assert waiting
    wait_until(lambda: half() <= of_others)
