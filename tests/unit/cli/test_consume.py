"""``rmqtools consume`` on the cluster in this process."""

import io
import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
import pytest

from rmqtools import MessageQueue
from rmqtools.arrow import MESSAGE_SCHEMA
from rmqtools.cli.output_messages import formatter
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.model.codes import RequestCode
from rmqtools.model.copy_message import own_properties
from rmqtools.testing import FakeCluster, stored_message
from tests.support.cluster_scene import wait_until


@pytest.fixture
def topic(cluster):
    cluster.create_topic("read", queues=1)
    for number in range(1, 5):
        cluster.store(
            "read",
            f"m{number}".encode(),
            queue=MessageQueue("read", "broker-a" if number % 2 else "broker-b", 0),
            tags=f"t{number}",
            properties={"KEYS": f"k{number}"},
            store_timestamp_ms=number * 1000,
        )
    return "read"


@pytest.mark.parametrize(
    ("options", "bodies"),
    [
        ((), ["m1", "m3", "m2", "m4"]),
        (("--last", "3"), ["m2", "m3", "m4"]),
        (("--queue", "broker-b:0"), ["m2", "m4"]),
        (("--count", "1"), ["m1"]),
        (("--from", "1"), ["m3", "m4"]),
        (("--from", "latest"), []),
        (("--from", "1970-01-01T00:00:02", "--until", "1970-01-01T00:00:04"), ["m3", "m2"]),
        (("--until", "1"), ["m1", "m2"]),
        (("--tags", "t1 || t4"), ["m1", "m4"]),
        (("--follow", "--from", "earliest", "--count", "4"), ["m1", "m3", "m2", "m4"]),
    ],
)
def test_what_is_wanted_is_printed_and_nothing_is_touched(run, cluster, topic, options, bodies):
    done = run("consume", topic, *options)

    assert done.stdout.split() == bodies
    assert cluster.requests(code=15) == []  # UPDATE_CONSUMER_OFFSET


@pytest.mark.process
def test_follow_prints_what_comes(run, cluster):
    cluster.create_topic("coming", queues=1)
    cluster.store("coming", b"old")

    def store_when_followed() -> None:
        queues = 2
        wait_until(lambda: len(cluster.requests(RequestCode.GET_MAX_OFFSET, topic="coming")) > queues)
        cluster.store("coming", b"new")

    with ThreadPoolExecutor(1) as other:
        stored = other.submit(store_when_followed)
        assert run("consume", "coming", "--follow", "--count", "1").stdout == "new\n"
        stored.result()


def test_json_lines_can_be_sent_again(run, cluster, topic):
    cluster.create_topic("copy", queues=1)
    lines = run("consume", topic, "--format", "json").stdout
    run("produce", "copy", "--format", "json", stdin=lines)

    row = json.loads(lines.splitlines()[0])
    assert (row["body"], row["broker_name"], row["queue_offset"], row["tags"]) == ("m1", "broker-a", 0, "t1")
    assert {m.body for m in cluster.messages("copy")} == {b"m1", b"m2", b"m3", b"m4"}
    assert {m.keys for m in cluster.messages("copy")} == {"k1", "k2", "k3", "k4"}


def test_messages_are_written_to_a_parquet_file(run, topic, tmp_path):
    path = tmp_path / "read.parquet"

    shown = run("consume", topic, "--format", "parquet", "-o", path)

    table = pq.read_table(path)
    assert shown.stdout == ""
    assert table.schema.names == MESSAGE_SCHEMA.names
    assert table.select(["brokerName", "queueOffset", "body", "tags"]).to_pylist()[:2] == [
        {"brokerName": "broker-a", "queueOffset": 0, "body": b"m1", "tags": "t1"},
        {"brokerName": "broker-a", "queueOffset": 1, "body": b"m3", "tags": "t3"},
    ]
    assert table.num_rows == 4


def test_parquet_goes_to_a_pipe_too_and_in_the_order_that_was_asked_for(run, topic):
    data = run("consume", topic, "--format", "parquet", "--last", "3").stdout_bytes

    assert pq.read_table(io.BytesIO(data))["body"].to_pylist() == [b"m2", b"m3", b"m4"]


def test_a_topic_without_messages_is_a_parquet_file_without_rows(run, topic, tmp_path):
    run("consume", topic, "--from", "latest", "--format", "parquet", "-o", tmp_path / "none.parquet")

    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


@pytest.mark.parametrize("form", ["text", "json", "parquet"])
@pytest.mark.parametrize(
    "wrong", [("--queue", "broker-c:0"), ("-g", "g", "--last", "1"), ("--until", "soon")]
)
def test_a_file_keeps_its_content_if_the_options_are_wrong(run, topic, tmp_path, form, wrong):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("an hour of work")

    for path in (old, new):
        with pytest.raises(ConfigError):
            run("consume", topic, "--format", form, "-o", path, *wrong)

    assert old.read_text() == "an hour of work"
    assert not new.exists()


@pytest.mark.parametrize(
    ("options", "text"), [(("--queue", "broker-b:0"), "m2\nm4\n"), (("--from", "latest"), "")]
)
def test_a_longer_file_is_replaced_by_what_was_read(run, topic, tmp_path, options, text):
    path = tmp_path / "old"
    path.write_text("old\n" * 1000)

    run("consume", topic, "-o", path, *options)

    assert path.read_text() == text


@pytest.mark.parametrize("form", ["text", "parquet"])
def test_a_dash_is_standard_output(run, topic, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)

    written = run("consume", topic, "--format", form, "-o", "-").stdout_bytes

    assert b"m1" in written
    assert not (tmp_path / "-").exists()


def test_a_device_takes_messages(run, topic):
    assert run("consume", topic, "-o", "/dev/null").exit_code == 0


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_what_was_written_to_a_file_can_be_sent_again(run, cluster, tmp_path, form):
    hard = b'\x00\xff,"\n'
    given = {"a": "1", "b": 'x "y"', "__SHARDINGKEY": "order-7", "KEYS": "k1 k2"}
    cluster.create_topic(f"hard-{form}", queues=1)
    cluster.create_topic(f"again-{form}", queues=1)
    queue = MessageQueue(f"hard-{form}", "broker-a", 0)
    cluster.store(queue.topic, hard, b"two\n", queue=queue, tags="t", properties=given, flag=7)
    cluster.store(queue.topic, b"plain", queue=queue)
    path = tmp_path / "messages"

    run("consume", queue.topic, "--format", form, "-o", path)
    done = run("produce", f"again-{form}", "--format", form, "-f", path, "--json")

    def content(message):
        return message.body, message.tags, message.keys, message.flag, own_properties(message.properties)

    first, again = cluster.messages(queue.topic), cluster.messages(f"again-{form}")
    assert json.loads(done.stdout)["stored"] == 3
    assert sorted(map(str, map(content, again))) == sorted(map(str, map(content, first)))
    assert [message.properties.get("__SHARDINGKEY") for message in again].count("order-7") == 2


MESSAGE = stored_message("T", 5, body=b"\x00hello, world: 123", tags="a", properties={"KEYS": "k"})


def test_a_format_of_ones_own_has_fields_and_escapes():
    text = formatter("text", r"%t %q %o %k %g %S%%\t%s\x00\n")(MESSAGE)

    assert text == b"T 0 5 k a 18%\t\x00hello, world: 123\x00\n"


def test_a_hex_dump_shows_offsets_bytes_and_text():
    lines = formatter("hex", None)(MESSAGE).decode().splitlines()

    assert lines[0].endswith("offset 5, 18 bytes")
    assert lines[1] == "00000000  00 68 65 6c 6c 6f 2c 20 77 6f 72 6c 64 3a 20 31  .hello, world: 1"
    assert lines[2].split() == ["00000010", "32", "33", "23"]


def test_a_body_that_is_no_text_is_base64_in_json():
    binary = stored_message("T", 0, body=b"\xff")

    assert json.loads(formatter("json", None)(binary))["body_base64"] == "/w=="


def test_a_command_gets_each_message_and_its_place(run, topic, tmp_path):
    heard = tmp_path / "heard"
    note = f'echo "$MESSAGE_QUEUE $MESSAGE_KEYS $(cat)" >> {heard}'

    run("consume", topic, "--from", "1", "--exec", f"sh -c '{note}'")

    assert heard.read_text().splitlines() == ["0 k3 m3", "0 k4 m4"]


def test_a_command_that_fails_ends_the_replay_and_the_error_says_where(run, topic, tmp_path):
    heard = tmp_path / "heard"
    stops = f'cat >> {heard}; test "$MESSAGE_KEYS" != k3'

    with pytest.raises(RocketMQError, match=r"exit code 1 at broker-a:0 offset 1 .* --from 1"):
        run("consume", topic, "--exec", f"sh -c '{stops}'")

    assert heard.read_text() == "m1m3"


@pytest.mark.process
def test_a_group_gets_its_share_and_commits_what_is_printed(run, cluster):
    cluster.create_topic("shared", queues=1, broker_names=["broker-a"])
    cluster.store("shared", b"1", b"2", b"3")
    group = ("consume", "shared", "-g", "readers", "--from", "earliest", "--idle", "0.3")

    first = run(*group, "--count", "2").stdout
    committed = cluster.committed("readers", MessageQueue("shared", "broker-a", 0))
    rest = run(*group).stdout

    assert (first, committed, rest) == ("1\n2\n", 2, "3\n")


@pytest.mark.process
def test_ctrl_c_ends_a_follower_without_a_word(cluster, topic):
    follow = ("consume", topic, "--follow", "--from", "earliest", "-n", cluster.name_server)
    program = [sys.executable, "-m", "rmqtools", *follow]
    follower = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"m1\n"

    follower.send_signal(signal.SIGINT)
    _, err = follower.communicate(timeout=60)

    assert (follower.returncode, err) == (130, b"")


@pytest.mark.parametrize(
    ("properties", "line"),
    [
        ({"KEYS": "k1 k2", "TAGS": "paid"}, b"keys=k1 k2 tags=paid 7 apples\n"),
        ({"TAGS": "paid"}, b"tags=paid 7 apples\n"),
        ({}, b"7 apples\n"),
    ],
)
def test_people_see_keys_and_tags_before_the_body_and_pipes_the_body_alone(properties, line):
    message = stored_message("T", 0, body=b"7 apples", properties=properties)

    assert formatter("text", None, for_terminal=True)(message) == line
    assert formatter("text", None)(message) == b"7 apples\n"


def test_some_time_ago_goes_by_the_clock_of_the_broker(run):
    with FakeCluster() as ahead:
        ahead.advance(600)
        ahead.create_topic("orders", queues=1)
        for seconds in (540, 590):
            ahead.store("orders", b"%d" % seconds, store_timestamp_ms=SYSTEM_CLOCK.now_ms() + seconds * 1000)
        read = run("consume", "orders", "--from=-30s", "-n", ahead.name_server)

    assert read.stdout.split() == ["590"]
