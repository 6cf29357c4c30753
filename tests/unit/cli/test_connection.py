"""Names for the shell, and the help of every command."""

from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from rmqtools.cli import app, connection
from rmqtools.cli.connection import complete_group, complete_topic
from tools.site_pages import every_command


def context(name_server):
    return SimpleNamespace(params={"name_server": name_server, "settings": None})


def test_names_of_topics_and_groups_are_completed_from_the_cluster(cluster):
    cluster.create_topic("orders", queues=1)
    cluster.create_group("order-billing")

    assert complete_topic(context(cluster.name_server), "ord") == ["orders"]
    assert complete_group(context(cluster.name_server), "ord") == ["order-billing"]


@pytest.mark.process
def test_a_cluster_that_does_not_answer_completes_nothing(capsys, monkeypatch):
    monkeypatch.setattr(connection, "_COMPLETION_SECONDS", "0.1")

    assert complete_topic(context("127.0.0.1:1"), "") == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.process
@pytest.mark.parametrize("path", [path for path, _ in every_command()])
def test_the_help_of_every_command_names_what_options_take(path):
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*path.split()[1:], "--help"])

    assert shown.exit_code == 0
    rows = [row for row in shown.stdout.splitlines() if "list[" in row and "--" in row]
    assert rows == []  # typer shows it of arguments, whatever their metavar
