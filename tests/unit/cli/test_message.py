"""``rmqtools message get`` on the cluster in this process."""

import json

import pytest

from rmqtools import Message, MessageQueue, Producer, ProducerConfig
from rmqtools.errors import ConfigError, TopicNotFoundError


@pytest.fixture(scope="module")
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


@pytest.mark.parametrize("option", ["--key", "--unique-key"])
def test_keys_find_a_message_in_its_topic(run, sent, option):
    name = "k1" if option == "--key" else sent.msg_id

    (row,) = json.loads(run("message", "get", "found", option, name, "--json").stdout)

    assert (row["msg_id"], row["body"], row["properties"]) == (sent.msg_id, "hello", {"color": "red"})
    assert {track["consumer_group"]: track["track_type"] for track in row["track"]} == {
        "behind": "NOT_CONSUME_YET",
        "done": "CONSUMED",
    }


def test_no_message_is_exit_code_1_and_says_what_was_looked_for(run, sent):
    nothing = run("message", "get", "found", "--key", "k9")

    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert nothing.stderr == "error: topic 'found' has no message with key 'k9' that a broker still has\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("found",), "give one of --id, --key, --unique-key"),
        (("--key", "k"), "give the topic too"),
        (("found", "--key", "k", "--from", "x"), "--from 'x' is no time"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(run, options, words):
    with pytest.raises(ConfigError, match=words):
        run("message", "get", *options)


def test_an_unknown_topic_is_an_error(run, sent):
    with pytest.raises(TopicNotFoundError, match="did you mean 'found'"):
        run("message", "get", "fuond", "--key", "k")
