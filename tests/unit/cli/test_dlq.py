"""``rmqtools dlq`` on the cluster in this process."""

import json
import time
from typing import cast

import pytest
from typer.testing import CliRunner

from rmqtools import MessageExt
from rmqtools.cli import app
from rmqtools.cli.dlq import paced
from rmqtools.compiled import state
from rmqtools.errors import RocketMQError
from rmqtools.number_of import number_of
from rmqtools.testing import RequestCode, ResponseCode


@pytest.fixture(autouse=True)
def letters(cluster):
    cluster.create_topic("again", queues=1, broker_names=["broker-a"])
    cluster.create_topic("%DLQ%billing", queues=1, broker_names=["broker-a"])
    cluster.store("%DLQ%billing", b"a", b"b", properties={"RETRY_TOPIC": "again"})


def test_an_export_to_standard_output_is_nothing_but_lines_that_produce_takes(run, cluster):
    lines = run("dlq", "export", "-g", "billing", "-f", "-").stdout
    run("produce", "again", "--format", "json", stdin=lines)

    assert [json.loads(line)["origin_topic"] for line in lines.splitlines()] == ["again", "again"]
    assert bodies(cluster, "again") == [b"a", b"b"]


def test_a_dry_run_counts(run):
    counted = run("dlq", "replay", "-g", "billing", "--dry-run")

    assert counted.stdout == "2 messages of %DLQ%billing would be sent to again\n"


@pytest.mark.process
def test_a_dry_run_that_reaches_nobody_says_only_that():
    unreachable = ("-n", "127.0.0.1:1", "--set", "request_timeout=0.2")
    result = CliRunner().invoke(app, ["dlq", "replay", "-g", "billing", "--dry-run", *unreachable])

    assert str(result.exception).startswith("cannot connect to 127.0.0.1:1")
    assert result.output == ""


@pytest.fixture
def broken_off(cluster):
    """Two letters that can be sent, and one that cannot."""
    cluster.create_topic("target", queues=1, broker_names=["broker-a"])
    cluster.create_topic("%DLQ%shop", queues=1, broker_names=["broker-a"])
    cluster.store("%DLQ%shop", b"1", b"2", properties={"RETRY_TOPIC": "target"})
    cluster.store("%DLQ%shop", b"3")
    return ("dlq", "replay", "-g", "shop")


def test_a_replay_continues_by_itself_after_an_interruption(run, cluster, broken_off):
    with pytest.raises(RocketMQError, match="does not say which topic it came from"):
        run(*broken_off)
    with pytest.raises(RocketMQError, match="does not say which topic it came from"):
        run(*broken_off)

    assert bodies(cluster, "target") == [b"1", b"2"]


def test_a_replay_without_progress_says_what_the_next_run_sends_again(run, cluster, broken_off):
    broken = CliRunner(env={"NAMESRV_ADDR": cluster.name_server}).invoke(app, [*broken_off, "--no-progress"])

    assert broken.stdout == "2 messages of %DLQ%shop sent to target\n"
    assert "the next run sends these 2 again (--no-progress)" in broken.stderr
    assert len(cluster.messages("target")) == 2


def test_a_second_replay_says_where_it_continues_and_sends_what_has_failed_since(run, cluster):
    cluster.create_topic("%DLQ%twice", queues=1, broker_names=["broker-a"])
    cluster.create_topic("sent", queues=1, broker_names=["broker-a"])
    replay = ("dlq", "replay", "-g", "twice")
    cluster.store("%DLQ%twice", b"1", properties={"RETRY_TOPIC": "sent"})
    run(*replay)
    cluster.store("%DLQ%twice", b"2", properties={"RETRY_TOPIC": "sent"})
    second = run(*replay)

    assert bodies(cluster, "sent") == [b"1", b"2"]
    assert "that the last replay ended; --no-progress sends all again" in second.stderr


@pytest.fixture
def kinds(cluster):
    """A replay of four letters of two colours, each with a key of its own."""
    for topic in ("%DLQ%kinds", "to-kinds"):
        cluster.create_topic(topic, queues=1, broker_names=["broker-a"])
    for number, color in enumerate(("red", "blue", "red", "blue")):
        properties = {"RETRY_TOPIC": "to-kinds", "KEYS": f"k{number} all", "TAGS": "t", "color": color}
        cluster.store("%DLQ%kinds", str(number).encode(), properties=properties)
    return "kinds"


def bodies(cluster, topic):
    return [message.body for message in cluster.messages(topic)]


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (("--key", "k2"), [b"2"]),
        (("--key", "all", "--where", "color=red"), [b"0", b"2"]),
        (("--where", "color=blue", "--where", "TAGS=t"), [b"1", b"3"]),
        (("--where", "color=blue", "--key", "k0"), []),
    ],
)
def test_some_letters_are_sent_and_a_later_replay_leaves_those_out(run, cluster, kinds, options, sent):
    replay = ("dlq", "replay", "-g", kinds)
    dry = run(*replay, *options, "--dry-run").stdout
    run(*replay, *options)
    some = bodies(cluster, "to-kinds")
    run(*replay, *options)
    again = bodies(cluster, "to-kinds")
    run(*replay)
    everything = bodies(cluster, "to-kinds")
    run(*replay)

    said = f"{number_of(len(sent), 'message')} of %DLQ%kinds would be sent to to-kinds\n"
    assert dry == (said if sent else "")
    assert (some, again) == (sent, sent)
    assert everything[len(sent) :] == [body for body in (b"0", b"1", b"2", b"3") if body not in sent]
    assert bodies(cluster, "to-kinds") == everything


def test_letters_are_shown_with_their_place_origin_keys_and_bodies(run, kinds):
    shown = run("dlq", "browse", "-g", kinds, "--where", "color=blue").stdout.splitlines()
    (row,) = json.loads(run("dlq", "browse", "-g", kinds, "--key", "k1", "--json").stdout)

    assert " ".join(shown[0].split()) == "QUEUE OFFSET STORED FROM KEYS TAGS RETRIES BODY"
    assert [line.split()[1] for line in shown[1:]] == ["1", "3"]
    assert shown[1].split()[-6:] == ["to-kinds", "k1", "all", "t", "0", "1"]
    assert (row["queue_offset"], row["origin_topic"], row["properties"]) == (
        1,
        "to-kinds",
        {"color": "blue"},
    )


def test_letters_are_shown_where_no_statistics_are_served_as_by_proxies(run, cluster, kinds):
    code = RequestCode.GET_TOPIC_STATS_INFO
    cluster.fault(code=code, times=None, answer=ResponseCode.REQUEST_CODE_NOT_SUPPORTED)

    assert len(json.loads(run("dlq", "browse", "-g", kinds, "--json").stdout)) == 4


def test_what_nothing_fits_is_said(run, kinds):
    assert run("dlq", "browse", "-g", kinds, "--key", "k9").stderr == "%DLQ%kinds has no such messages\n"


@pytest.mark.process
@pytest.mark.parametrize(("rate", "least"), [(None, 0.0), (20.0, 0.15)])
def test_messages_are_sent_no_faster_than_wished(rate, least):
    start = time.monotonic()
    passed = [time.monotonic() - start for _ in paced(cast("list[MessageExt]", range(4)), rate)]

    assert passed[-1] >= least


def test_an_export_leaves_the_target_of_a_planted_link_alone(run, tmp_path):
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "letters.part").symlink_to(target)

    run("dlq", "export", "-g", "billing", "-f", tmp_path / "letters")

    assert target.read_text() == "mine"
    assert len((tmp_path / "letters").read_text().splitlines()) == 2


def test_the_version_is_one_line_with_the_state_of_the_compiled_module(run):
    text = run("--version").stdout

    assert text.startswith("rmqtools 0.")
    assert text.endswith(f", compiled module {state()})\n")


def test_messages_that_wait_for_a_retry_are_shown_saved_and_sent_instead_of_dead_letters(run, cluster):
    for topic in ("%RETRY%waiting", "%DLQ%waiting", "waits"):
        cluster.create_topic(topic, queues=1, broker_names=["broker-a"])
    cluster.store("%RETRY%waiting", b"later", properties={"RETRY_TOPIC": "waits"})
    cluster.store("%DLQ%waiting", b"dead", properties={"RETRY_TOPIC": "waits"})
    waiting = ("-g", "waiting", "--retry")

    shown = json.loads(run("dlq", "browse", *waiting, "--json").stdout)
    saved = run("dlq", "export", *waiting, "-f", "-").stdout.splitlines()
    run("dlq", "replay", *waiting)

    assert ([each["body_base64"] for each in shown], len(saved)) == (["bGF0ZXI="], 1)
    assert bodies(cluster, "waits") == [b"later"]
