"""A push consumer in a process of its own as a member of a group: Java's (java/Consumer.java), or ours.

with JavaConsumer(java_peer, name_server, "group", "topic", "--print") as member:
    member.await_assigned(8)
    member.await_messages(100)
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Thread
from typing import IO, Any, Self

from rmqtools import MessageQueue
from tests.support.java_peer import JavaPeer, JavaPeerError
from tests.support.patience import PATIENCE


class JavaConsumer:
    """One member in a process of its own; ``options`` as at the head of Consumer.java.

    Args:
        peer: the compiled programs (fixture ``java_peer``).
        name_server: as a client's setting.
        group: consumer group.
        topic: its subscription.
        options: ``"--strategy", "CIRCLE"``, ``"--orderly"``, ``"--print"``, ...
    """

    def __init__(self, peer: JavaPeer, name_server: str, group: str, topic: str, *options: str) -> None:
        self._peer = peer
        self._set_up((name_server, group, topic, *options))

    def _set_up(self, arguments: tuple[str, ...]) -> None:
        self._arguments = arguments
        self._news = Condition()
        self._messages: list[dict[str, Any]] = []
        self._assigned: set[MessageQueue] | None = None
        self._ended = False
        self.client_id = ""
        self.was_clean = False  # it has left the group before it ended

    @property
    def assigned(self) -> set[MessageQueue]:
        """The queues it owns, as it says itself; the retry topic's left out."""
        with self._news:
            return set(self._assigned or ())

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What it has consumed so far; ``body`` as bytes, ``seenAt`` in seconds. Needs ``--print``."""
        with self._news:
            return list(self._messages)

    def option(self, name: str) -> str:
        """What it was started with, e.g. ``--strategy``."""
        return self._arguments[self._arguments.index(name) + 1]

    def await_assigned(self, count: int, *, timeout: float = PATIENCE) -> set[MessageQueue]:
        """Wait until it owns so many queues, and return them."""
        what = f"{count} queues"
        self._await(lambda: self._assigned is not None and len(self._assigned) == count, what, timeout)
        return self.assigned

    def await_messages(self, count: int, *, timeout: float = PATIENCE) -> list[dict[str, Any]]:
        """Wait until it has consumed so many messages, and return all."""
        self._await(lambda: len(self._messages) >= count, f"{count} messages", timeout)
        return self.messages

    def start(self, *, timeout: float = PATIENCE) -> Self:
        """Start it; returns when it has joined the group."""
        self._home = tempfile.TemporaryDirectory()
        self._errors = Path(self._home.name, "stderr")
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                self._command(self._home.name),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                env=self._environment(self._home.name),
            )
        assert self._process.stdout is not None
        self._reader = Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        try:
            self._await(lambda: bool(self.client_id), "a start", timeout)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Let it leave the group (SIGTERM) and wait until it has ended."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise JavaPeerError(
                f"{type(self).__name__} {self._arguments}: no end within {PATIENCE:.0f} s: {self._said()}"
            ) from None
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill it. Brokers keep the member until they notice that its connection has closed."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._home.cleanup()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Freeze the process during the block: it stays connected and answers no requests."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self.stop()

    def _command(self, home: str) -> list[str]:
        return self._peer.command(home, "Consumer", *self._arguments)

    def _environment(self, home: str) -> dict[str, str] | None:
        """Its environment; None: that of the tests."""
        return None

    def _read(self, output: IO[str]) -> None:
        for line in output:
            if not line.startswith("{"):  # native clients print more
                continue
            with self._news:
                self._note(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _note(self, row: dict[str, Any]) -> None:
        if "clientId" in row:
            self.client_id = row["clientId"]
        elif "assigned" in row:
            self._assigned = {MessageQueue(*queue) for queue in row["assigned"]}
        elif "stopped" in row:
            self.was_clean = True
        else:
            seen = {"body": bytes.fromhex(row["body"]), "seenAt": time.monotonic()}
            self._messages.append(row | seen)

    def _await(self, true: Callable[[], bool], what: str, timeout: float) -> None:
        with self._news:
            self._news.wait_for(lambda: self._ended or true(), timeout)
            if true():
                return
            seen = f"{len(self._messages)} messages, queues {sorted(self._assigned or ())}"
        ended = f"it ended: {self._said()}" if self._ended else f"not within {timeout:.0f} s"
        raise JavaPeerError(f"{type(self).__name__} {self._arguments}: no {what}, {ended}; so far {seen}")

    def _said(self) -> str:
        lines = self._errors.read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines if " |-" not in line)


class PythonConsumer(JavaConsumer):
    """Like :class:`JavaConsumer`, a member of ours; ``options`` as at the head of member.py."""

    def __init__(self, name_server: str, group: str, topic: str, *options: str) -> None:
        self._set_up((name_server, group, topic, *options))

    def _command(self, home: str) -> list[str]:
        return [sys.executable, "-m", "tests.support.member", *self._arguments]
