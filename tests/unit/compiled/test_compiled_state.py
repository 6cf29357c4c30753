"""Whether the compiled module is active, and why not, as users see it."""

import importlib
import os
import subprocess
import sys

import pytest

from rmqtools import compiled

ASK = "from rmqtools.compiled import state, twins; print(state())"


def answer(code: str, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "RMQTOOLS_PURE_PYTHON"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "environment", "text"),
    [
        pytest.param("", {}, "active", id="active"),
        pytest.param(
            "", {"RMQTOOLS_PURE_PYTHON": "1"}, "not active: RMQTOOLS_PURE_PYTHON is set", id="switched-off"
        ),
        pytest.param(
            "import sys; sys.version = '3.14.0 free-threading build (main)'; ",
            {},
            "not active: free-threaded builds of Python run without it",
            id="free-threaded",
        ),
        pytest.param(
            "import sys, importlib; sys.modules['rmqtools.compiled._twins'] = None; ",
            {},
            "not active: this installation has none: install a C compiler and Python's headers, "
            "then rmqtools again",
            id="not-built",
        ),
    ],
)
def test_the_state_says_why_the_compiled_module_is_not_active(code, environment, text):
    assert answer(code + ASK, **environment) == f"{text}\n"


@pytest.mark.skipif(compiled.twins is None, reason="the twins were left out on purpose")
def test_an_interpreter_that_refuses_the_module_gives_the_reason(monkeypatch):
    def refuse(_: str) -> None:
        raise ImportError("unknown layout")

    monkeypatch.setattr(compiled, "import_module", refuse)

    assert compiled._load() == (None, "unknown layout")
    assert importlib.import_module("rmqtools.compiled").state() == "active"
