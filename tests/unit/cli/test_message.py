"""``rmqtools message get`` on the cluster in this process."""

import json
import re
import time

import pytest

from rmqtools import Message, MessageQueue, Producer, ProducerConfig


@pytest.fixture
def sent(cluster):
    cluster.create_topic("found", queues=1, broker_names=["broker-a"])
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        sent = producer.send(Message("found", b"hello", tags="new", keys=["k1"], properties={"color": "red"}))
    cluster.commit("done", MessageQueue("found", "broker-a", 0), 1)
    cluster.commit("behind", MessageQueue("found", "broker-a", 0), 0)
    return sent


def test_a_message_is_shown_with_its_track(run, sent):
    lines = run("message", "get", "--id", sent.offset_msg_id).stdout.splitlines()

    assert lines[:3] == [
        "topic:      found",
        "queue:      broker-a:0, offset 0",
        f"message id: {sent.msg_id}",
    ]
    assert "properties: color=red" in lines
    assert "body:       hello" in lines
    assert [line.split() for line in lines[-4:]] == [
        ["GROUP", "TRACK", "GROUP", "OFFSET", "MEMBERS", "NOTE"],
        ["behind", "NOT_CONSUME_YET", "0", "none"],
        ["done", "CONSUMED", "1", "none"],
        [],
    ]


def test_a_message_that_no_group_reads_says_so(run, cluster):
    cluster.create_topic("unread", queues=1, broker_names=["broker-a"])
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        sent = producer.send(Message("unread", b"x"))

    assert "no group reads this topic" in run("message", "get", "--id", sent.offset_msg_id).stdout


def test_more_messages_of_a_key_than_a_broker_returns_at_once(run, cluster):
    cluster.create_topic("many", queues=1, broker_names=["broker-a"])
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        for count in (40, 30):
            producer.send_many([Message("many", b"x", keys=["same"])] * count)
            cluster.advance(5.0)  # a broker returns at most 64 of a second

    def found(*limit):
        get = ("message", "get", "many", "--key", "same", "--no-track", "--json")
        return len(json.loads(run(*get, *limit).stdout))

    assert (found(), found("--limit", "64")) == (32, 64)
    assert (found("--limit", "66"), found("--limit", "100")) == (66, 70)


@pytest.mark.parametrize("option", ["--key", "--unique-key"])
def test_keys_find_a_message_in_its_topic(run, sent, option):
    name = "k1" if option == "--key" else sent.msg_id

    (row,) = json.loads(run("message", "get", "found", option, name, "--json").stdout)

    assert (row["msg_id"], row["body"], row["properties"]) == (sent.msg_id, "hello", {"color": "red"})
    assert {track["consumer_group"]: track["track_type"] for track in row["track"]} == {
        "behind": "NOT_CONSUME_YET",
        "done": "CONSUMED",
    }


@pytest.fixture
def large(cluster, sent):
    """A message with a body that is not decompressed with the options of LARGE, behind another one."""
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        return producer.send(Message("found", b"x" * 50_000, tags="large", keys=["k1"]))


LARGE = ("message", "get", "found", "--set", "max_decompressed_bytes=1000")


@pytest.mark.parametrize("option", ["--id", "--unique-key"])
def test_a_body_that_cannot_be_read_is_told_with_the_rest_of_its_message(run, large, option):
    shown = run(*LARGE, option, large.msg_id)
    lines = shown.stdout.splitlines()

    (body,) = [line for line in lines if line.startswith("body:")]
    assert re.fullmatch(
        r"body:       cannot be read: ZLIB body of \d+ bytes is larger than 1000 bytes; .*", body
    )
    assert "tags:       large" in lines
    assert ["behind", "NOT_CONSUME_YET"] in [line.split()[:2] for line in lines]
    assert shown.exit_code == 1


@pytest.mark.parametrize("limit", [32, 100])
def test_a_body_that_cannot_be_read_is_null_as_json_with_its_reason(run, large, limit):
    shown = run(*LARGE, "--key", "k1", "--limit", limit, "--json")

    first, second = json.loads(shown.stdout)
    assert (first["body"], "body_error" in first) == ("hello", False)
    assert (second["msg_id"], second["tags"], second["body"]) == (large.msg_id, "large", None)
    assert "is larger than 1000 bytes; if you trust its sender" in second["body_error"]
    assert [track["consumer_group"] for track in second["track"]] == ["behind", "done"]
    assert shown.exit_code == 1


def test_no_message_is_exit_code_1_and_says_what_was_looked_for(run, sent):
    nothing = run("message", "get", "found", "--key", "k9")

    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert nothing.stderr == "error: topic 'found' has no message with key 'k9' that a broker still has\n"


NOW_MS = int(time.time() * 1000)
KEY = "7F000001000118B4AAC2000000000001"


@pytest.fixture
def copies(cluster):
    """A topic whose message failed in groups; topics of brokers with what waits."""
    for name in ("SCHEDULE_TOPIC_XXXX", "bad", "%RETRY%retrying", "%RETRY%waiting", "%DLQ%dead"):
        cluster.create_topic(name, queues=1, broker_names=["broker-a"])
    ids = {"UNIQ_KEY": KEY, "KEYS": "b1"}
    cluster.store("bad", b"x", properties=ids)
    for group in ("retrying", "waiting", "dead", "fine"):
        cluster.commit(group, MessageQueue("bad", "broker-a", 0), 1)
    ago = {"store_timestamp_ms": NOW_MS - 3600_000}
    soon = {"REAL_TOPIC": "%RETRY%waiting", "DELAY": "18"}
    cluster.store("SCHEDULE_TOPIC_XXXX", b"x", properties=ids | soon, **ago)
    cluster.store("SCHEDULE_TOPIC_XXXX", b"x", properties=ids | soon | {"DELAY": "1"}, **ago)
    cluster.store("%RETRY%retrying", b"x", properties=ids)
    cluster.store("%DLQ%dead", b"x", properties=ids)
    later = {"UNIQ_KEY": KEY[:-1] + "2", "KEYS": "d1", "REAL_TOPIC": "bad", "DELAY": "18"}
    cluster.store("SCHEDULE_TOPIC_XXXX", b"later", properties=later, **ago)
    cluster.create_topic("rmq_sys_wheel_timer", queues=1, broker_names=["broker-a"])
    timed = {"UNIQ_KEY": KEY[:-1] + "3", "KEYS": "t1", "REAL_TOPIC": "bad", "TIMER_OUT_MS": "4000000000000"}
    cluster.store("rmq_sys_wheel_timer", b"timed", properties=timed, **ago)


def test_a_message_that_failed_is_shown_with_where_it_waits_in_each_group(run, copies):
    (row,) = json.loads(run("message", "get", "bad", "--key", "b1", "--json").stdout)
    shown = run("message", "get", "bad", "--key", "b1").stdout

    states = {group: copy["state"] for group, copy in row["failed"].items()}
    assert states == {"retrying": "RETRY_NOT_CONSUMED", "waiting": "WAITS_FOR_RETRY", "dead": "DEAD_LETTER"}
    assert row["failed"]["waiting"]["until_ms"] == NOW_MS + 3600_000
    assert "retry 0 is not consumed yet: %RETRY%retrying broker-a:0 offset 0" in shown
    assert ": %DLQ%dead broker-a:0 offset 0" in shown


@pytest.mark.parametrize(
    "name", [("--key", "d1"), ("--unique-key", KEY[:-1] + "2"), ("--id", KEY[:-1] + "2")]
)
def test_a_delayed_message_is_found_with_the_time_of_its_delivery(run, copies, name):
    (row,) = json.loads(run("message", "get", "bad", *name, "--json").stdout)
    lines = run("message", "get", "bad", *name).stdout.splitlines()

    assert (row["topic"], row["body"], row["state"]["until_ms"]) == ("bad", "later", NOW_MS + 3600_000)
    assert lines[1].startswith("state:      delayed until 2")
    assert "no group reads this topic" not in lines


@pytest.mark.parametrize(
    ("span", "count"),
    [(("--until=-2h",), 0), (("--from=-30m",), 0), (("--from=-2h",), 1), (("--from=-2h", "--until=-30m"), 1)],
)
def test_a_delayed_message_is_shown_if_it_was_stored_in_the_time_that_is_asked_for(run, copies, span, count):
    found = run("message", "get", "bad", "--key", "d1", *span, "--json")

    assert (len(json.loads(found.stdout)), found.exit_code) == (count, 0 if count else 1)


def test_a_message_with_a_time_of_its_own_is_found_too(run, copies):
    (row,) = json.loads(run("message", "get", "bad", "--key", "t1", "--json").stdout)

    assert (row["body"], row["state"]["until_ms"]) == ("timed", 4000000000000)


@pytest.mark.parametrize("form", ["{}", " msgId={},", "'{}'"])
def test_an_id_is_taken_as_clients_print_it(run, sent, form):
    for text in (sent.msg_id, sent.msg_id.lower(), sent.offset_msg_id):
        (row,) = json.loads(run("message", "get", "found", "--id", form.format(text), "--json").stdout)
        assert row["msg_id"] == sent.msg_id


def test_a_message_is_shown_without_its_track(run, sent):
    with_track, without = (
        run("message", "get", "--id", sent.offset_msg_id, option).stdout
        for option in ("--track", "--no-track")
    )

    assert "NOT_CONSUME_YET" in with_track
    assert "NOT_CONSUME_YET" not in without
    assert "body:       hello" in without
