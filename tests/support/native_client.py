"""The native Python clients as peers: rocketmq-client-python 2.0.0 and rocketmq 0.4.4.

All of them own the import package ``rocketmq``, so each is installed into a directory of its own and runs in
a process of its own, with a time limit: they crash and hang in ordinary use. rocketmq-client-python brings no
library; that of rocketmq-python-cvs has all it needs.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from tests.support.java_consumer import JavaConsumer
from tests.support.java_peer import CHECKOUT

_PROGRAM = Path(__file__).with_name("native_program.py")
_INSTALL_SECONDS, _RUN_SECONDS = 300.0, 120.0


class NativeClientError(Exception):
    """A native client cannot be installed, has crashed or hangs."""


@dataclass(frozen=True)
class NativeClient:
    """One installed package; ``library``: the library it loads, "" for its own."""

    name: str
    packages: Path
    library: str = ""

    @classmethod
    def installed(cls, name: str) -> Self:
        """Install ``rocketmq-client-python`` or ``rocketmq`` below the checkout's build folder, once."""
        packages = install_peer(name)
        if name != "rocketmq-client-python":
            return cls(name, packages)
        return cls(name, packages, str(install_peer("rocketmq-python-cvs") / "rocketmq" / "librocketmq.so"))

    def command(self, what: str, *arguments: str) -> list[str]:
        """The command line of native_program.py."""
        return [sys.executable, str(_PROGRAM), str(self.packages), self.library, what, *arguments]

    def send(self, name_server: str, group: str, topic: str, mode: str, count: int) -> list[dict[str, Any]]:
        """Have it send numbered messages; one row each."""
        command = self.command("send", name_server, group, topic, mode, str(count))
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run(
                command,
                capture_output=True,
                encoding="utf-8",
                check=False,
                timeout=_RUN_SECONDS,
                env=_environment(home),
            )
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or {"done": True} not in rows:
            raise NativeClientError(f"{self.name} {mode}: exit code {done.returncode}: {done.stderr[-2000:]}")
        return [row for row in rows if "number" in row]


class NativeMember(JavaConsumer):
    """A push consumer of a native client, from entering the block until leaving it, which kills it."""

    def __init__(self, client: NativeClient, name_server: str, group: str, topic: str) -> None:
        self._client = client
        self._set_up((name_server, group, topic))

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _command(self, home: str) -> list[str]:
        return self._client.command("member", *self._arguments)

    def _environment(self, home: str) -> dict[str, str]:
        return _environment(home)

    def _note(self, row: dict[str, Any]) -> None:
        if "ready" in row:
            self.client_id = self._client.name
        elif "body" in row:
            self._messages.append(row)


def _environment(home: str) -> dict[str, str]:
    return {"HOME": home, "ROCKETMQ_CLIENT_LOG_DIR": home, "PATH": "/usr/bin:/bin"}


@cache
def _versions() -> dict[str, str]:
    """The packages of the dependency group ``interop``, and their versions."""
    groups = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["dependency-groups"]
    return dict(one.split("==") for one in groups["interop"])


def install_peer(name: str, *, with_dependencies: bool = False) -> Path:
    """Install a package into a folder of its own; an existing installation is reused."""
    version = _versions()[name]
    target = CHECKOUT / ".build" / "native" / f"{name}-{version}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as made:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
            command += [] if with_dependencies else ["--no-deps"]
            done = subprocess.run(
                [*command, "--target", made, f"{name}=={version}"],
                capture_output=True,
                encoding="utf-8",
                check=False,
                timeout=_INSTALL_SECONDS,
            )
            if done.returncode:
                raise NativeClientError(f"{name} cannot be installed: {done.stderr[-2000:]}")
            try:
                Path(made).rename(target)
            except OSError:
                if not target.exists():  # another process of this run was first
                    raise
            else:
                Path(made).mkdir()  # for the clean-up
    return target
