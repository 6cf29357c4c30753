"""``rmqtools dlq`` on the cluster in this process."""

import json

import pytest
from typer.testing import CliRunner

from rmqtools import MessageQueue
from rmqtools.cli import app

LETTERS = MessageQueue("%DLQ%billing", "broker-a", 0)


@pytest.fixture(scope="module", autouse=True)
def letters(cluster):
    cluster.create_topic("again", queues=1, broker_names=["broker-a"])
    cluster.create_topic("%DLQ%billing", queues=1, broker_names=["broker-a"])
    cluster.store("%DLQ%billing", b"a", b"b", properties={"RETRY_TOPIC": "again"})


def test_an_export_to_standard_output_is_nothing_but_lines_that_produce_takes(run, cluster):
    lines = run("dlq", "export", "-g", "billing", "-f", "-").stdout
    run("produce", "again", "--format", "json", stdin=lines)

    assert [json.loads(line)["origin_topic"] for line in lines.splitlines()] == ["again", "again"]
    assert [message.body for message in cluster.messages("again")] == [b"a", b"b"]


def test_a_dry_run_counts(run):
    counted = run("dlq", "replay", "-g", "billing", "--dry-run")

    assert counted.stdout == "2 messages of %DLQ%billing would be sent to again\n"


def test_a_dry_run_that_reaches_nobody_says_only_that():
    unreachable = ("-n", "127.0.0.1:1", "--set", "request_timeout=0.2")
    result = CliRunner().invoke(app, ["dlq", "replay", "-g", "billing", "--dry-run", *unreachable])

    assert str(result.exception).startswith("cannot connect to 127.0.0.1:1")
    assert result.output == ""


def test_the_version_is_one_line(run):
    assert run("--version").stdout.startswith("rmqtools 0.")
