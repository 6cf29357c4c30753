"""``rmqtools message story`` on the cluster in this process."""

import json

import pytest

from rmqtools import Message, MessageQueue, Producer, ProducerConfig
from rmqtools.errors import ConfigError, TopicNotFoundError


@pytest.fixture(scope="module")
def sent(cluster):
    cluster.create_topic("told", queues=1, broker_names=["broker-a"])
    cluster.create_topic("traces-of-told", queues=1, broker_names=["broker-a"])
    config = ProducerConfig(
        name_server=cluster.name_server, group="shop", enable_trace=True, trace_topic="traces-of-told"
    )
    with Producer(config) as producer:
        sent = producer.send(Message("told", b"hello", keys=["k1", "both"]))
        producer.send(Message("told", b"hello", keys="both"))
    cluster.commit("done", MessageQueue("told", "broker-a", 0), 1)
    return sent


def test_a_story_has_a_line_for_each_event_and_says_what_is_not_known(run, sent):
    shown = run("message", "story", "k1", "--trace-topic", "traces-of-told").stdout.splitlines()

    assert shown[0] == f"message {sent.msg_id} of topic told, tags -, keys k1 both"
    assert shown[1].split()[:4] == ["TIME", "(UTC)", "EVENT", "GROUP"]
    assert {line.split()[2] for line in shown[2:5]} == {"born", "sent", "stored"}
    assert ["done", "CONSUMED", "1", "no"] in [line.split() for line in shown]
    assert shown[shown.index("not known:") + 1] == (
        "- group done, who got it, when, with which result: no trace records of its members (enable_trace)"
    )


def test_a_story_as_json_has_events_groups_and_what_is_not_known(run, sent):
    (row,) = json.loads(run("message", "story", sent.msg_id, "-t", "told", "--json").stdout)

    assert (row["msg_id"], row["topic"], row["groups"][0]["group"]) == (sent.msg_id, "told", "done")
    assert [event["kind"] for event in row["events"]] == ["born", "stored"]
    assert row["unknown"][0].startswith("sends and deliveries: there is no trace topic 'RMQ_SYS_TRACE_TOPIC'")


@pytest.mark.process
def test_a_time_line_is_saved(run, sent, tmp_path):
    path = tmp_path / "story.svg"

    said = run("message", "story", "k1", "-t", "told", "--plot", str(path)).stderr

    assert said == f"saved {path}\n"
    assert sent.msg_id in path.read_text()


def test_a_time_line_is_of_one_message(run, sent, tmp_path):
    with pytest.raises(ConfigError, match=f"key 'both' has 2 messages: give one of the ids {sent.msg_id}, "):
        run("message", "story", "both", "-t", "told", "--plot", str(tmp_path / "story.svg"))


def test_no_message_is_exit_code_1_and_says_where_was_looked(run, sent):
    nothing = run("message", "story", "k9", "-t", "told")
    nowhere = run("message", "story", "k9", "--trace-topic", "traces-of-told")

    assert (nothing.exit_code, nowhere.exit_code) == (1, 1)
    assert nothing.stderr == "error: no message with key or id 'k9': topic 'told' has none\n"
    assert nowhere.stderr == "error: no message with key or id 'k9': no trace record has it: give --topic\n"


def test_without_a_topic_and_a_trace_topic_the_error_says_what_to_give(run, sent):
    with pytest.raises(ConfigError, match=r"'k1' is not known: .* no trace topic .* give topic"):
        run("message", "story", "k1")


def test_a_topic_that_does_not_exist_is_an_error(run):
    with pytest.raises(TopicNotFoundError):
        run("message", "story", "k", "-t", "tlod")
