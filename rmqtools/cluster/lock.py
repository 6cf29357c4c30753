"""``locks/VERSION.lock``: every jar that the servers of a version need, with its SHA-256.

A lock is the runtime closure of name server, broker, client and tools, as Maven resolves it, less
the native libraries of other systems than Linux on x86-64 (the servers do without them elsewhere).
``locks/VERSION-proxy.lock`` has the jars that a proxy needs in addition.
``python -m rmqtools.cluster.lock VERSION`` rewrites a lock, with ``--proxy`` that of the proxy; this needs
Maven. Check the difference before you commit it: the sums are those of the files that Maven downloads now.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rmqtools.cluster.errors import ClusterError
from rmqtools.errors import ConfigError

DEFAULT_VERSION = "5.5.0"
_LOCKS = Path(__file__).with_name("locks")
_ROOTS = ("rocketmq-namesrv", "rocketmq-broker", "rocketmq-client", "rocketmq-tools")
_PROXY_ROOTS = ("rocketmq-proxy",)
_PROXY_SUFFIX = "-proxy"
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
                f"line {line!r} of a lock file is not 'group:artifact[:classifier]:version sha256': "
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
        """The file's name as Maven, and our pattern for Ivy, write it."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.jar"

    @property
    def repository_path(self) -> Path:
        """The file's path in a Maven repository."""
        return Path(*self.group.split("."), self.artifact, self.version, self.file_name)


def locked_versions(*, proxy: bool = False) -> list[str]:
    """Return the versions that can be started; with ``proxy`` those whose proxy can."""
    names = [path.stem for path in _LOCKS.glob("*.lock")]
    if proxy:
        return sorted(name.removesuffix(_PROXY_SUFFIX) for name in names if name.endswith(_PROXY_SUFFIX))
    return sorted(name for name in names if not name.endswith(_PROXY_SUFFIX))


def locked_jars(version: str = DEFAULT_VERSION, *, proxy: bool = False) -> tuple[LockedJar, ...]:
    """Return the jars of a version's servers; with ``proxy`` those of its proxy too.

    Raises:
        ConfigError: no lock for that version.
    """
    for needs_proxy in (False, proxy):
        if version not in (known := locked_versions(proxy=needs_proxy)):
            what = "a proxy of version" if needs_proxy else "servers of version"
            raise ConfigError(f"no jars are locked for {what} {version!r}: want one of {', '.join(known)}")
    names = (version, f"{version}{_PROXY_SUFFIX}") if proxy else (version,)
    lines = [line for name in names for line in _lock_path(name).read_text(encoding="ascii").splitlines()]
    return tuple(LockedJar.parse(line) for line in lines if line and not line.startswith("#"))


def _lock_path(name: str) -> Path:
    return _LOCKS / f"{name}.lock"


def resolve_closure(version: str, roots: Sequence[str] = _ROOTS) -> list[LockedJar]:
    """Ask Maven for the closure of RocketMQ ``version``; sorted."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        dependencies = "\n".join(
            f"<dependency><groupId>org.apache.rocketmq</groupId><artifactId>{root}</artifactId>"
            f"<version>{version}</version></dependency>"
            for root in roots
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


def write_lock(version: str, *, proxy: bool) -> None:
    """Resolve a version with Maven and write its lock; that of a proxy leaves out the servers' own jars."""
    known = set(locked_jars(version)) if proxy else set()
    jars = [jar for jar in resolve_closure(version, _PROXY_ROOTS if proxy else _ROOTS) if jar not in known]
    name = f"{version}{_PROXY_SUFFIX}" if proxy else version
    _lock_path(name).write_text(_HEADER + "".join(jar.format() + "\n" for jar in jars), encoding="ascii")


if __name__ == "__main__":
    write_lock(sys.argv[1], proxy="--proxy" in sys.argv[2:])
