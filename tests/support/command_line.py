"""The command ``rmqtools`` as a child process, as a user runs it."""

import os
import subprocess
import sys

from tests.support.patience import PROGRAM_PATIENCE

_PROGRAM = "from rmqtools.cli import main; main()"


def rmqtools(*arguments: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run it with additional environment variables; NAMESRV_ADDR is set only if given."""
    environment = {key: value for key, value in os.environ.items() if key != "NAMESRV_ADDR"}
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, *map(str, arguments)],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE,
        check=False,
    )
