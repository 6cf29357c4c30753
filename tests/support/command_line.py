"""The command ``rmqtools``: in this process, or as a child process, which begins 0.7 seconds later.

``tests/unit/cli/root/test_every_command.py`` and the pages in ``tests/docs`` run it as a user does.
"""

import contextlib
import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from rmqtools.cli import main
from tests.support.cluster_scene import PROGRAM
from tests.support.patience import PROGRAM_PATIENCE

_SIGNALS = (signal.SIGINT, signal.SIGTERM)  # main() handles them


def rmqtools(*arguments: object, **variables: str) -> CompletedProcess[str]:
    """Run it on the main thread with additional environment variables; NAMESRV_ADDR is set only if given."""
    command = ["rmqtools", *map(str, arguments)]
    out, error = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        _signals_and_log_restored(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        patch.delenv("NAMESRV_ADDR", raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
    return CompletedProcess(command, int(ended.value.code or 0), out.getvalue(), error.getvalue())


@contextlib.contextmanager
def _signals_and_log_restored() -> Iterator[None]:
    log = logging.getLogger("rmqtools")
    level, handlers = log.level, {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        log.setLevel(level)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def rmqtools_program(*arguments: object, **variables: str) -> CompletedProcess[str]:
    """Run it as a child process: several may run at the same time."""
    environment = {key: value for key, value in os.environ.items() if key != "NAMESRV_ADDR"}
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE,
        check=False,
    )
