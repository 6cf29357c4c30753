"""``rmqtools spark check`` hands its arguments to the doctor and its exit code back."""

import subprocess
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from rmqtools.cli import app
from rmqtools.errors import ConfigError


@pytest.mark.parametrize("code", [0, 1])
def test_the_doctor_is_run_with_what_was_given(monkeypatch, code):
    commands = []
    run = lambda command, check: commands.append(command) or SimpleNamespace(returncode=code)  # noqa: E731
    monkeypatch.setattr(subprocess, "run", run)

    result = CliRunner().invoke(app, ["spark", "check", "-n", "h:1", "-t", "T"])

    assert result.exit_code == code
    assert commands[0][1:] == ["-m", "spark_connector.doctor", "--name-server", "h:1", "--topic", "T"]


def test_without_pyspark_the_error_fits_an_install_from_a_checkout(monkeypatch):
    monkeypatch.setattr("rmqtools.cli.spark.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"pip install pyspark, or '.\[spark\]' in a checkout"):
        CliRunner().invoke(app, ["spark", "check"], catch_exceptions=False)
