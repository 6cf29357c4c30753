"""``rmqtools dlq`` on the dead letters of a group whose Java member fails."""

import base64
import json
import uuid

import pytest

from rmqtools import Message, Perm
from rmqtools.model.names import dlq_topic, retry_topic
from tests.support.cluster_scene import wait_until
from tests.support.command_line import rmqtools
from tests.support.java_consumer import JavaConsumer
from tests.support.patience import PATIENCE
from tests.support.reading import read_all

pytestmark = pytest.mark.broker

BODIES = [bytes([number, 0, 255]) for number in range(3)]


@pytest.fixture
def variables(local_cluster, tmp_path) -> dict[str, str]:
    return {"NAMESRV_ADDR": local_cluster.name_server, "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def letters(admin, producer, make_topic) -> tuple[str, str]:
    """A group with three letters that do not say where they came from; and a topic to send them to."""
    group, topic = f"group-{uuid.uuid4().hex[:12]}", make_topic(queues=1)
    admin.create_topic(dlq_topic(group), read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])
    sent = [
        producer.send(Message(dlq_topic(group), body, tags="t", keys="k", properties={"color": "красный"}))
        for body in BODIES
    ]
    admin.await_readable({sent[-1].queue: len(sent)}, timeout=PATIENCE)
    return group, topic


def test_a_message_that_failed_too_often_is_listed_exported_and_replayed_to_where_it_came_from(
    java_peer, local_cluster, admin, client, producer, make_topic, tmp_path, variables
):
    group, topic, file = f"group-{uuid.uuid4().hex[:12]}", make_topic(queues=1), tmp_path / "letters.jsonl"
    producer.send(Message(topic, BODIES[2], tags="t", keys="k", properties={"color": "red"}, flag=5))
    options = ("--print", "--fail", "1", "--max-reconsume", "0")
    with JavaConsumer(java_peer, local_cluster.name_server, group, topic, *options) as member:
        member.await_messages(1)
        wait_until(lambda: dlq_topic(group) in admin.fetch_topic_list())
        wait_until(lambda: len(read_all(client, admin, dlq_topic(group))) == 1)

    listed = rmqtools("dlq", "list", "-g", group, "--json", **variables)
    exported = rmqtools("dlq", "export", "-g", group, "-f", file, **variables)
    replayed = rmqtools("dlq", "replay", "-g", group, **variables)
    wait_until(lambda: len(read_all(client, admin, topic)) == 2)

    counts = {row["topic"]: row["messages"] for row in json.loads(listed.stdout) if row["messages"]}
    assert counts == {dlq_topic(group): 1}
    (row,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert base64.b64decode(row["body_base64"]) == BODIES[2]
    assert (row["origin_topic"], row["tags"], row["keys"], row["flag"]) == (topic, "t", "k", 5)
    assert row["reserved_properties"]["RETRY_TOPIC"] == topic
    assert f"1 messages of {dlq_topic(group)} written to {file}" in exported.stdout
    assert f"1 messages of {dlq_topic(group)} sent to {topic}" in replayed.stdout
    first, second = read_all(client, admin, topic)
    assert (second.body, second.tags, second.keys, second.flag) == (first.body, first.tags, first.keys, 5)
    assert second.properties["color"] == "red"
    assert "RETRY_TOPIC" not in second.properties
    assert second.msg_id != first.msg_id


def test_a_replay_goes_on_where_it_was_and_a_dry_run_sends_nothing(
    admin, client, letters, tmp_path, variables
):
    group, topic = letters
    replay = ("dlq", "replay", "-g", group, "--to-topic", topic, "--progress", tmp_path / "progress.json")

    dry = rmqtools(*replay, "--dry-run", **variables)
    empty = read_all(client, admin, topic)
    counted = [rmqtools(*replay, "--limit", 2, **variables).stdout for _ in range(2)]
    nothing = rmqtools(*replay, **variables)
    wait_until(lambda: len(read_all(client, admin, topic)) == 3)

    assert f"3 messages of {dlq_topic(group)} would be sent to {topic}" in dry.stdout
    assert empty == []
    assert [text.split()[0] for text in counted] == ["2", "1"]
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert sorted(message.body for message in read_all(client, admin, topic)) == BODIES


def test_a_topic_that_was_made_anew_since_the_last_replay_is_refused(letters, tmp_path, variables):
    group, topic = letters
    progress = tmp_path / "progress.json"
    text = json.dumps({"topic": dlq_topic(group), "next": {"broker-a:0": 500}})
    progress.write_text(text)

    replay = ("dlq", "replay", "-g", group, "--to-topic", topic, "--progress", progress)
    refused = rmqtools(*replay, **variables)

    assert refused.returncode == 2
    assert f"queue broker-a:0 of {dlq_topic(group)} ends at offset 3, before 500" in refused.stderr
    assert progress.read_text() == text


def test_a_letter_that_does_not_say_where_it_came_from_ends_a_replay(letters, tmp_path, variables):
    group, _ = letters
    progress = tmp_path / "progress.json"

    refused = rmqtools("dlq", "replay", "-g", group, "--progress", progress, **variables)

    assert refused.returncode == 1
    assert "does not say which topic it came from: give --to-topic" in refused.stderr
    assert json.loads(progress.read_text())["next"] == {}


def test_a_topic_that_may_not_be_read_is_an_error_with_its_remedy(admin, letters, tmp_path, variables):
    group, _ = letters
    topic, file = dlq_topic(group), tmp_path / "letters.jsonl"
    admin.create_topic(
        topic, read_queue_nums=1, write_queue_nums=1, perm=Perm.WRITE, broker_names=["broker-a"]
    )

    refused = rmqtools("dlq", "list", "-g", group, **variables)
    made = rmqtools("dlq", "export", "-g", group, "-f", file, "--make-readable", **variables)

    assert refused.returncode == 1
    assert f"topic '{topic}' may not be read on broker-a (perm 2): --make-readable" in refused.stderr
    assert (made.returncode, len(file.read_text().splitlines())) == (0, 3), made.stderr
    (data,) = admin.fetch_route(topic).queue_datas
    assert data.perm == Perm.READ | Perm.WRITE


def test_a_group_of_which_nothing_failed_has_nothing_to_list_and_nothing_to_export(tmp_path, variables):
    listed = rmqtools("dlq", "list", "-g", "nobody", **variables)
    exported = rmqtools("dlq", "export", "-g", "nobody", "-f", tmp_path / "x", **variables)

    assert (listed.returncode, "nothing ever failed" in listed.stdout) == (0, True)
    assert (exported.returncode, list(tmp_path.iterdir())) == (1, [])
    assert f"there is no topic {dlq_topic('nobody')}" in exported.stderr
    assert retry_topic("nobody") in listed.stdout
