"""What the commands do before they ask anybody: arguments, refusals, offline work."""

import json

import pytest
from typer.testing import CliRunner

from rmqtools.cli import app
from rmqtools.cli.connection import client_config
from rmqtools.config import ClientConfig
from rmqtools.errors import ConfigError

ALLOCATE = ("allocate", "-t", "T", "--queue-counts", "a:2,b:1", "--members", "10.0.0.1@x,10.0.0.2@y")
PIN = ("pin", "set", "-g", "g", "--ip", "10.0.0.1", "--when-absent", "nobody", "-n", "127.0.0.1:1")


def run(*arguments: str) -> str:
    """What a command prints; its error is raised as main() gets it."""
    result = CliRunner(env={"NAMESRV_ADDR": ""}).invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("text", ["99999999999d", "9" * 5000 + "s"], ids=["days", "digits"])
def test_a_pin_that_is_longer_than_a_time_can_be_is_refused(text):
    refused = CliRunner().invoke(app, [*PIN, "--for", text], catch_exceptions=False)

    assert (refused.exit_code, "a time: give" in refused.stderr) == (2, True)


def test_without_a_name_server_the_error_says_how_to_give_one(monkeypatch):
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    with pytest.raises(ConfigError, match="give --name-server HOST:PORT, or set NAMESRV_ADDR"):
        client_config("", None, ClientConfig)


def test_allocate_works_offline():
    rows = json.loads(run(*ALLOCATE, "-s", "AVG", "--json"))

    assert [(row["broker_name"], row["queue_id"], row["then"]) for row in rows] == [
        ("a", 0, ["10.0.0.1@x"]),
        ("a", 1, ["10.0.0.1@x"]),
        ("b", 0, ["10.0.0.2@y"]),
    ]


def test_allocate_shows_queues_that_nobody_would_own():
    shown = run(*ALLOCATE, "-s", "PINNED_BY_IP", "-o", "ips=10.9.9.9", "-o", "when_absent=nobody")

    assert shown.count("nobody") == 3
    assert "10.0.0.1@x: 0 of 3 queues" in shown


def test_logs_of_a_server_are_printed_also_after_its_end(tmp_path):
    (tmp_path / "broker-a").mkdir()
    (tmp_path / "broker-a" / "server.log").write_text("boot\nbye\n")
    (tmp_path / "broker-a" / "output.log").write_text("out of memory\n")
    logs = ("cluster", "logs", "broker-a", "--dir", str(tmp_path))

    assert run(*logs, "--lines", "1") == "bye\n"
    assert run(*logs, "--jvm") == "out of memory\n"


def test_ports_of_brokers_that_are_no_numbers_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"--broker-ports '10911,x': want PORT,PORT"):
        run("cluster", "up", "--dir", str(tmp_path), "--broker-ports", "10911,x")
