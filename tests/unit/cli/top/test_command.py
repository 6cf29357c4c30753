import sys
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from rmqtools.cli import app
from rmqtools.cli.top.command import top
from rmqtools.errors import ConfigError


@pytest.mark.parametrize("redirected", ["stdin", "stderr"])
def test_a_redirected_stream_is_refused_because_the_view_needs_it(monkeypatch, redirected):
    for name in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{name}", Mock(isatty=lambda name=name: name != redirected))

    with pytest.raises(ConfigError, match="keys from standard input and draws on standard error"):
        top("127.0.0.1:1")


def test_without_textual_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rmqtools.cli.top.app", None)

    with pytest.raises(ConfigError, match=r"needs textual .* pip install 'rmqtools\[top\]'"):
        CliRunner().invoke(app, ["top", "-n", "127.0.0.1:1"], catch_exceptions=False)
