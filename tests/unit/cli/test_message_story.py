"""``rmqtools message story`` on the cluster in this process."""

import json
from dataclasses import replace

import pytest

from rmqtools import Admin, Message, MessageQueue, Producer, ProducerConfig
from rmqtools.errors import ConfigError
from rmqtools.model.message_story import MessageStory, StoryEvent, StoryEventKind


@pytest.fixture
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


def attempts(run, monkeypatch, *options):
    """Print the story of a message that failed 100 times in one group, and was delivered once in another."""
    delivered = StoryEvent(at_ms=1_000, kind=StoryEventKind.DELIVERED, text="success", group="well")
    failed = [replace(delivered, text=f"failed {number}", group="poisoned") for number in range(1, 101)]
    told = MessageStory(**dict.fromkeys(MessageStory.__dataclass_fields__, ()) | {"msg_id": "A"})  # type: ignore[arg-type]
    told = replace(told, events=(*failed[:50], delivered, *failed[50:]))
    monkeypatch.setattr(Admin, "fetch_message_stories", lambda *_, **__: [told])
    return run("message", "story", "k", *options).stdout.splitlines()[2:]


def test_of_many_attempts_the_first_and_the_last_are_shown_and_how_many_are_between(run, monkeypatch):
    shown = attempts(run, monkeypatch)

    assert [line.split()[-1] for line in shown if "failed" in line] == [
        str(number) for number in (*range(1, 13), *range(89, 101))
    ]
    assert shown[12].endswith("...        poisoned  -       76 more events of the group: --all shows them")
    assert "success" in shown[13]


def test_all_attempts_are_shown_if_wished(run, monkeypatch):
    shown = attempts(run, monkeypatch, "--all")

    assert sum("failed" in line for line in shown) == 100
    assert not any("..." in line for line in shown)


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
