"""``rmqtools dlq`` on the dead letters that a real broker has made."""

import base64
import json
import uuid

import pytest

from rmqtools import Message, Perm
from rmqtools.model.names import dlq_topic, retry_topic
from tests.support.cluster_scene import wait_until
from tests.support.command_line import rmqtools
from tests.support.listening import numbers
from tests.support.reading import await_readable, read_all

pytestmark = pytest.mark.broker


BODY = bytes([2, 0, 255])


@pytest.fixture
def variables(local_cluster, tmp_path) -> dict[str, str]:
    return {"NAMESRV_ADDR": local_cluster.name_server, "XDG_STATE_HOME": str(tmp_path / "state")}


def test_a_message_that_failed_too_often_is_listed_exported_and_replayed_to_where_it_came_from(
    consume, admin, client, producer, make_topic, tmp_path, variables
):
    def fail(messages, context):
        raise ValueError("told to fail")

    group, topic, file = f"group-{uuid.uuid4().hex[:12]}", make_topic(queues=1), tmp_path / "letters.jsonl"
    producer.send(Message(topic, BODY, tags="t", keys="k", properties={"color": "red"}, flag=5))
    member = consume(topic, fail, group=group, max_reconsume_times=0)
    wait_until(lambda: dlq_topic(group) in admin.fetch_topic_list())
    wait_until(lambda: len(read_all(client, admin, dlq_topic(group))) == 1)
    member.close()

    listed = rmqtools("dlq", "list", "-g", group, "--json", **variables)
    exported = rmqtools("dlq", "export", "-g", group, "-f", file, **variables)
    replayed = rmqtools("dlq", "replay", "-g", group, **variables)
    wait_until(lambda: len(read_all(client, admin, topic)) == 2)

    counts = {row["topic"]: row["messages"] for row in json.loads(listed.stdout) if row["messages"]}
    assert counts == {dlq_topic(group): 1}
    (row,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert base64.b64decode(row["body_base64"]) == BODY
    assert (row["origin_topic"], row["tags"], row["keys"], row["flag"]) == (topic, "t", "k", 5)
    assert row["reserved_properties"]["RETRY_TOPIC"] == topic
    assert f"1 message of {dlq_topic(group)} written to {file}" in exported.stdout
    assert f"1 message of {dlq_topic(group)} sent to {topic}" in replayed.stdout
    first, second = read_all(client, admin, topic)
    assert (second.body, second.tags, second.keys, second.flag) == (first.body, first.tags, first.keys, 5)
    assert second.properties["color"] == "red"
    assert "RETRY_TOPIC" not in second.properties
    assert second.msg_id != first.msg_id


def test_a_replay_goes_on_where_it_was_and_a_dry_run_sends_nothing(
    admin, client, producer, make_topic, tmp_path, variables
):
    group, topic = f"group-{uuid.uuid4().hex[:12]}", make_topic(queues=1)
    admin.create_topic(dlq_topic(group), read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])
    bodies = numbers(3)
    await_readable(admin, [producer.send(Message(dlq_topic(group), body)) for body in bodies])
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
    assert sorted(message.body for message in read_all(client, admin, topic)) == bodies


def test_a_topic_that_may_not_be_read_is_an_error_with_its_remedy(admin, producer, tmp_path, variables):
    group, file = f"group-{uuid.uuid4().hex[:12]}", tmp_path / "letters.jsonl"
    topic, settings = dlq_topic(group), {"read_queue_nums": 1, "write_queue_nums": 1}
    admin.create_topic(topic, **settings, broker_names=["broker-a"])
    await_readable(admin, [producer.send(Message(topic, BODY))])
    admin.create_topic(topic, **settings, perm=Perm.WRITE, broker_names=["broker-a"])

    refused = rmqtools("dlq", "list", "-g", group, **variables)
    made = rmqtools("dlq", "export", "-g", group, "-f", file, "--make-readable", **variables)

    assert refused.returncode == 1
    assert f"topic '{topic}' may not be read on broker-a (perm 2): --make-readable" in refused.stderr
    assert (made.returncode, len(file.read_text().splitlines())) == (0, 1), made.stderr
    (data,) = admin.fetch_route(topic).queue_datas
    assert data.perm == Perm.READ | Perm.WRITE


def test_a_group_of_which_nothing_failed_has_nothing_to_list_and_nothing_to_export(tmp_path, variables):
    listed = rmqtools("dlq", "list", "-g", "nobody", **variables)
    exported = rmqtools("dlq", "export", "-g", "nobody", "-f", tmp_path / "x", **variables)

    assert (listed.returncode, "nothing ever failed" in listed.stdout) == (0, True)
    assert (exported.returncode, list(tmp_path.iterdir())) == (1, [])
    assert f"there is no topic {dlq_topic('nobody')}" in exported.stderr
    assert retry_topic("nobody") in listed.stdout
