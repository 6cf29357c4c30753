"""The official Java client as a peer: tests/support/java, compiled against the server's jars.

Each command runs in a process of its own. Messages cross as JSON lines, bodies in hex: see the head of
Peer.java for the names.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.jars import ensure_jars

CHECKOUT = Path(__file__).resolve().parents[2]
_SOURCES = Path(__file__).with_name("java")
_JVM_OPTIONS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8")


class JavaPeerError(Exception):
    """The Java program cannot be built, failed, or took too long."""


@dataclass(frozen=True, kw_only=True)
class PeerMessage:
    """The message for the Java producer. ``compress``: None, ZLIB, LZ4 or ZSTD, for bodies of any size."""

    topic: str
    body: bytes
    tags: str | None = None
    keys: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    compress: str | None = None
    flag: int = 0
    broker_name: str | None = None  # with queue_id: this queue and no other
    queue_id: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Make the line that Peer.java reads."""
        return {
            "topic": self.topic,
            "body": self.body.hex(),
            "tags": self.tags,
            "keys": list(self.keys),
            "properties": dict(self.properties),
            "compress": self.compress,
            "flag": self.flag,
            "brokerName": self.broker_name,
            "queueId": self.queue_id,
        }


class JavaPeer:
    """Runs Peer.java's commands, each in a process of its own."""

    def __init__(
        self, java: Path, class_path: Sequence[Path], *, jvm_options: Sequence[str] = _JVM_OPTIONS
    ) -> None:
        self._java = java
        self._class_path = os.pathsep.join(map(str, class_path))
        self._jvm_options = jvm_options

    @classmethod
    def compiled(cls, sources: Path = _SOURCES, *, jvm_options: Sequence[str] = _JVM_OPTIONS) -> "JavaPeer":
        """Compile the sources that have changed, and return the peer.

        ``sources``: a directory of other programs, started with other ``jvm_options``.

        Raises:
            JavaPeerError: no JDK and no right to install one, no jars, or the sources do not compile.
        """
        jdk = _find_jdk()
        try:
            jars = ensure_jars()
        except ClusterError as error:
            raise JavaPeerError(f"no jars for the Java peer: {error}") from error
        return cls(jdk / "bin" / "java", (_compile(jdk, jars, sources), *jars), jvm_options=jvm_options)

    def fill(self, name_server: str, messages: Iterable[PeerMessage]) -> list[dict[str, Any]]:
        """Send the messages with DefaultMQProducer; return its send results, in the same order."""
        return self.run("fill", name_server, lines=(message.to_json() for message in messages))

    def dump(self, name_server: str, topic: str) -> list[dict[str, Any]]:
        """Read all queues of a topic from minimum to maximum offset; return rows by queue and offset."""
        return self.run("dump", name_server, topic)

    def run(
        self, *arguments: str, lines: Iterable[Mapping[str, Any]] = (), timeout: float = 120.0
    ) -> list[dict[str, Any]]:
        """Run one command with ``lines`` on its input; return the lines it printed.

        Raises:
            JavaPeerError: it failed, or did not end within ``timeout`` seconds (then it is killed).
        """
        text = "".join(json.dumps(line) + "\n" for line in lines)
        with tempfile.TemporaryDirectory() as home:  # the client logs there
            result = _run(self.command(home, "Peer", *arguments), text, timeout)
        return [json.loads(line) for line in result.split("\n") if line]  # splitlines also cuts at U+2028

    def command(self, home: str, main_class: str, *arguments: str) -> list[str]:
        """The command line of a program; the client logs below ``home``."""
        own = (f"-Duser.home={home}", f"-Drocketmq.log.root={home}/logs")
        return [str(self._java), *self._jvm_options, *own, "-cp", self._class_path, main_class, *arguments]


def _run(command: Sequence[str], text: str, timeout: float) -> str:
    try:
        result = subprocess.run(
            command, input=text, capture_output=True, encoding="utf-8", check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired as error:
        raise JavaPeerError(f"the Java peer did not end within {timeout:.0f} s") from error
    if result.returncode:
        said = [line for line in result.stderr.splitlines() if " |-" not in line]  # logback on its own start
        raise JavaPeerError("\n".join([f"the Java peer failed with {result.returncode}:", *said]))
    return result.stdout


def _find_jdk() -> Path:
    installed = subprocess.run(
        [str(CHECKOUT / ".ci" / "install-java")], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        raise JavaPeerError(installed.stderr.strip() or "no JDK: .ci/install-java failed")
    if home := os.environ.get("JAVA_HOME"):
        return Path(home)
    javac = shutil.which("javac")
    if javac is None:
        raise JavaPeerError("no javac on PATH")
    return Path(javac).resolve().parents[1]


def _compile(jdk: Path, jars: Sequence[Path], directory: Path) -> Path:
    """Return the directory of the classes, whose name contains the sources' hash: it is never out of date."""
    sources = sorted(directory.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    digest.update("".join(jar.name for jar in jars).encode())
    classes = CHECKOUT / ".build" / "java" / digest.hexdigest()[:16]
    if classes.is_dir():
        return classes
    classes.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=classes.parent) as temporary:
        work = Path(temporary, "classes")
        options = ["-d", str(work), "-cp", os.pathsep.join(map(str, jars))]
        options += ["-encoding", "UTF-8", "-proc:none", "-nowarn"]
        command = [str(jdk / "bin" / "javac"), *options, *map(str, sources)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise JavaPeerError(f"the Java peer does not compile: {result.stderr.strip()}")
        work.rename(classes)
    return classes
