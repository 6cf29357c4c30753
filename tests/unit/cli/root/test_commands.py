"""The list of commands: quick, and true."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from rmqtools.cli import app
from rmqtools.cli.root.commands import COMMANDS
from rmqtools.cli.root.lazy_group import load

HEAVY = (
    "rmqtools.cli.topic",
    "rmqtools.cli.cluster",
    "rmqtools.cluster",
    "rmqtools.cli.consume",
    "textual",
    "rich.progress",
)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_the_beginning_of_its_help(name):
    command = load(name, COMMANDS[name])

    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name].summary


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_its_own(name):
    shown = CliRunner().invoke(app, [name, "--help"], catch_exceptions=False)

    assert (shown.exit_code, f"Usage: rmqtools {name}" in shown.stdout) == (0, True)
    assert "Stand in the list" not in shown.stdout


def test_a_misspelled_command_is_an_error_that_names_one_spelled_alike():
    refused = CliRunner().invoke(app, ["topc", "list"])

    assert (refused.exit_code, "'topic'" in refused.stderr) == (2, True)


@pytest.mark.process
def test_help_and_version_import_no_command():
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from rmqtools.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "assert CliRunner().invoke(app, ['--version']).exit_code == 0\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
    )

    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ended.stdout == "[]\n"


def test_names_of_subcommands_are_completed():
    environment = {
        "_RMQTOOLS_COMPLETE": "complete_bash",
        "COMP_WORDS": "rmqtools group re",
        "COMP_CWORD": "2",
    }

    shown = CliRunner().invoke(app, [], env=environment, prog_name="rmqtools")

    assert shown.stdout.split() == ["reset"]
