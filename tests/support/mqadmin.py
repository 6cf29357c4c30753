"""The official mqadmin, as operators run it."""

import os
import subprocess
import tempfile
from pathlib import Path

from tests.support.java_peer import JavaPeer
from tests.support.patience import PROGRAM_PATIENCE

_MAIN = "org.apache.rocketmq.tools.command.MQAdminStartup"
_TIMED_OUT = "RemotingTimeoutException"  # its own limit of 3 s, which a busy machine breaks
_TRIES = 5
_LOGBACK = (
    '<configuration><root level="OFF"/></configuration>'  # its own has 60 appenders, told on the screen
)


class Mqadmin:
    """Commands against one name server, each in a process of its own."""

    def __init__(self, peer: JavaPeer, name_server: str) -> None:
        self._peer = peer
        self._name_server = name_server

    def run(self, command: str, *arguments: str) -> str:
        """What a command prints; of one that fails, the error."""
        said = _TIMED_OUT
        for _ in range(_TRIES):
            if _TIMED_OUT in said:
                said = self._run_once(command, *arguments)
        return said

    def _run_once(self, command: str, *arguments: str) -> str:
        with tempfile.TemporaryDirectory() as home:  # it writes reports there
            Path(home, "rmq.logback.xml").write_text(_LOGBACK)
            line = self._peer.command(home, _MAIN, command, "-n", self._name_server, *arguments)
            at = line.index("-cp") + 1
            line[at] = os.pathsep.join((home, line[at]))
            line.insert(at - 1, f"-Djava.io.tmpdir={home}")  # remappingStaticTopic leaves files there
            done = subprocess.run(
                line, capture_output=True, text=True, check=False, timeout=PROGRAM_PATIENCE, cwd=home
            )
        return done.stdout + done.stderr
