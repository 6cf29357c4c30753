"""Our push consumer as a member of a group in a process of its own: tests/support/member.py."""

import sys

from tests.support.java_consumer import JavaConsumer


class PythonConsumer(JavaConsumer):
    """Like :class:`JavaConsumer`; ``options`` as at the head of member.py."""

    def __init__(self, name_server: str, group: str, topic: str, *options: str) -> None:
        self._set_up((name_server, group, topic, *options))

    def _command(self, home: str) -> list[str]:
        return [sys.executable, "-m", "tests.support.member", *self._arguments]
