import sys

import pytest
from typer.testing import CliRunner

from rmqtools.cli import app
from rmqtools.errors import ConfigError


def test_without_textual_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rmqtools.cli.top.app", None)

    with pytest.raises(ConfigError, match=r"needs textual .* pip install 'rmqtools\[top\]'"):
        CliRunner().invoke(app, ["top", "-n", "127.0.0.1:1"], catch_exceptions=False)
