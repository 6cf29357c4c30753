"""``jars.lock``: every jar the servers need, with its SHA-256.

The lock is the runtime closure of name server, broker, client and tools, as Maven resolves it, less
the native libraries of other systems than Linux on x86-64 (the servers do without them elsewhere).
``python -m rmqtools.cluster.lock VERSION`` writes it anew; this needs Maven. Look at the difference
before you commit it: the sums are taken from what Maven downloads now.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rmqtools.cluster.errors import ClusterError

LOCK_PATH = Path(__file__).with_name("jars.lock")
_ROOTS = ("rocketmq-namesrv", "rocketmq-broker", "rocketmq-client", "rocketmq-tools")
_FOREIGN = re.compile(r"osx|windows|aarch_64|riscv64")
_HEADER = "# group:artifact[:classifier]:version sha256; written by python -m rmqtools.cluster.lock\n"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>rmqtools</groupId><artifactId>closure</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
{dependencies}
</dependencies>
</project>
"""


@dataclass(frozen=True, slots=True)
class LockedJar:
    """One line of the lock: ``group:artifact[:classifier]:version sha256``."""

    group: str
    artifact: str
    classifier: str | None
    version: str
    sha256: str

    @classmethod
    def parse(cls, line: str) -> "LockedJar":
        """Read one line of the lock.

        Raises:
            ClusterError: the line has another form.
        """
        try:
            coordinates, sha256 = line.split()
            group, artifact, *classifiers, version = coordinates.split(":")
            (classifier,) = classifiers or ("",)
        except ValueError as error:
            raise ClusterError(
                f"line {line!r} of {LOCK_PATH.name} is not 'group:artifact[:classifier]:version sha256': "
                "write the lock anew with python -m rmqtools.cluster.lock"
            ) from error
        return cls(group, artifact, classifier or None, version, sha256)

    def format(self) -> str:
        """Return the line; :meth:`parse` reads it."""
        return (
            ":".join(filter(None, (self.group, self.artifact, self.classifier, self.version)))
            + f" {self.sha256}"
        )

    @property
    def file_name(self) -> str:
        """The name that Maven, and our pattern for Ivy, give the file."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.jar"

    @property
    def repository_path(self) -> Path:
        """Where the file is in a repository of Maven's layout."""
        return Path(*self.group.split("."), self.artifact, self.version, self.file_name)


def locked_jars() -> tuple[LockedJar, ...]:
    """Return all lines of the lock."""
    lines = LOCK_PATH.read_text(encoding="ascii").splitlines()
    return tuple(LockedJar.parse(line) for line in lines if line and not line.startswith("#"))


def resolve_closure(version: str) -> list[LockedJar]:
    """Ask Maven for the closure of RocketMQ ``version``; sorted."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        dependencies = "\n".join(
            f"<dependency><groupId>org.apache.rocketmq</groupId><artifactId>{root}</artifactId>"
            f"<version>{version}</version></dependency>"
            for root in _ROOTS
        )
        (work / "pom.xml").write_text(_POM.format(dependencies=dependencies), encoding="utf-8")
        subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                "-f",
                str(work / "pom.xml"),
                "dependency:list",
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                f"-DoutputFile={work / 'list'}",
                f"-DoutputDirectory={work / 'jars'}",
            ],
            check=True,
        )
        listed = (work / "list").read_text(encoding="utf-8").splitlines()
        return sorted(
            filter(None, (_lock_line(line, work / "jars") for line in listed)), key=LockedJar.format
        )


def _lock_line(line: str, jars: Path) -> LockedJar | None:
    """Turn ``group:artifact:jar[:classifier]:version:scope`` into a line of the lock."""
    parts = line.strip().split(":")
    if len(parts) not in (5, 6) or (len(parts) == 6 and _FOREIGN.search(parts[3])):
        return None
    jar = LockedJar(parts[0], parts[1], parts[3] if len(parts) == 6 else None, parts[-2], "")
    sha256 = hashlib.sha256((jars / jar.file_name).read_bytes()).hexdigest()
    return LockedJar(jar.group, jar.artifact, jar.classifier, jar.version, sha256)


if __name__ == "__main__":
    LOCK_PATH.write_text(
        _HEADER + "".join(jar.format() + "\n" for jar in resolve_closure(sys.argv[1])), encoding="ascii"
    )
