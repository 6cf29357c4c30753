"""Programs written for rocketmq-client-python: run as they are, or with our imports."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.java_peer import CHECKOUT
from tests.support.native_client import NativeClient, NativeClientError

_RUN = Path(__file__).with_name("native_run.py")
_SECONDS = 120.0


def moved(program: str) -> str:
    """The text of a program with our package in the place of the native one."""
    return program.replace("from rocketmq.", "from rmqtools.compat.")


class Run:
    """A program that runs in a process and a folder of its own, until :meth:`output` is asked for."""

    def __init__(self, program: Path, *arguments: str, native: NativeClient | None) -> None:
        self._folder = tempfile.TemporaryDirectory()
        home = Path(self._folder.name)
        copy = home / program.name
        copy.write_text(program.read_text() if native else moved(program.read_text()))
        first = [str(_RUN), str(native.packages), native.library] if native else []
        self._process = subprocess.Popen(
            [sys.executable, *first, str(copy), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=home,
            env={
                "HOME": str(home),
                "ROCKETMQ_CLIENT_LOG_DIR": str(home),
                "PATH": os.defpath,
                **({} if native else {"PYTHONPATH": str(CHECKOUT)}),
            },
        )

    def output(self) -> str:
        """Wait for its end; what it has printed.

        Raises:
            NativeClientError: it crashed, or took too long.
        """
        try:
            output, errors = self._process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise NativeClientError(f"{self._process.args!r}: not within {_SECONDS} s") from error
        if self._process.returncode:
            raise NativeClientError(
                f"{self._process.args!r}: exit code {self._process.returncode}: {errors[-3000:]}"
            )
        return output

    def close(self) -> None:
        """End the process, if it has not ended, and remove its folder."""
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()
