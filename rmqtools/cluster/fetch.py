"""Two ways to fetch jars: Maven if it is installed, else the Ivy that PySpark ships.

Both get the name of every jar and do not follow dependencies, so both fetch the same files.
They decide where to fetch from: their built-in default, or the user's settings (a company's mirror).
Those are ``~/.m2/settings.xml`` for Maven; for Ivy the file that IVY_SETTINGS names, else
``~/.ivy2/ivysettings.xml``.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.sax.saxutils import quoteattr

from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.java import find_java
from rmqtools.cluster.lock import LockedJar
from rmqtools.cluster.processes import Watchdog, mark

_CAUSES = (  # words in the output, the cause, the remedy
    (
        re.compile("PKIX path building failed|unable to find valid certification path"),
        "Java does not trust the certificate of the repository, or of a proxy in between",
        "add that certificate to a trust store (keytool -importcert) and set "
        "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE",
    ),
    (
        re.compile("UnknownHost|Unknown host|Name or service not known|in name resolution"),
        "name look-up of the repository failed",
        "check DNS, or name a mirror",
    ),
    (
        re.compile(
            "(?i)Connection refused|connect(?:ion)? timed out|No route to host|Network is unreachable"
        ),
        "connect to the repository failed",
        "check the network and its proxy (JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=HOST), or name a mirror",
    ),
)
_MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"  # the version in Maven 3's own POM


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A command that puts jars into a directory, and how to read its output."""

    name: str
    command: Sequence[str]
    done: re.Pattern[str]  # matches an output line that reports one more jar
    failed: re.Pattern[str]  # matches an output line with the reason of a failure
    remedy: str
    cache: Path | None = None  # its own cache; removed on success, or when a file was wrong

    def forget(self) -> None:
        """Remove the way's own cache: the jars are stored elsewhere, or were wrong."""
        if self.cache is not None:
            shutil.rmtree(self.cache, ignore_errors=True)


def choose_way(jars: Sequence[LockedJar], work: Path, cache: Path) -> Way:
    """Return the way that this machine supports, prepared to fetch ``jars`` into ``work``.

    Raises:
        ClusterError: there is neither Maven nor PySpark.
    """
    maven = shutil.which("mvn")
    if maven:
        return _maven(maven, jars, work)
    ivy = _find_ivy()
    if ivy:
        return _ivy(ivy, jars, work, cache / "ivy")
    raise ClusterError(
        "no way to fetch the server's jars: neither Maven (mvn on PATH; apt-get install maven) nor PySpark, "
        "which ships Ivy (pip install pyspark, or '.[spark]' in a checkout); install one of the two"
    )


def _maven(maven: str, jars: Sequence[LockedJar], work: Path) -> Way:
    pom = work / "pom.xml"
    names = "|".join(re.escape(jar.file_name) for jar in jars)
    pom.write_text(_POM.format(dependencies="\n".join(map(_maven_dependency, jars))), encoding="utf-8")
    return Way(
        name="Maven",
        command=[
            maven,
            "-B",
            "-f",
            str(pom),
            mark(work),
            f"{_MAVEN_PLUGIN}:copy-dependencies",
            f"-DoutputDirectory={work}",
        ],
        done=re.compile(rf"Downloaded\b.*/(?:{names})\b"),  # it also downloads jars of its own
        failed=re.compile(r"^\[ERROR\] (?!Re-run|To see|For more|\s*$)(.*)"),
        remedy="check ~/.m2/settings.xml (mirrors), remove the file from ~/.m2/repository, try again",
    )


_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>rmqtools</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
{dependencies}
</dependencies>
</project>
"""


def _maven_dependency(jar: LockedJar) -> str:
    classifier = f"<classifier>{jar.classifier}</classifier>" if jar.classifier else ""
    return (
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId>"
        f"<version>{jar.version}</version>{classifier}<exclusions><exclusion>"
        "<groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
    )


def _find_ivy() -> Path | None:
    """Look into PySpark's directory without importing it."""
    spec = importlib.util.find_spec("pyspark")
    folders = spec.submodule_search_locations if spec else None
    return next((jar for folder in folders or () for jar in Path(folder, "jars").glob("ivy-*.jar")), None)


def _ivy(ivy: Path, jars: Sequence[LockedJar], work: Path, cache: Path) -> Way:
    description = work / "ivy.xml"
    description.write_text(_IVY.format(dependencies="\n".join(map(_ivy_dependency, jars))), encoding="utf-8")
    settings = _ivy_settings()
    # the user's settings may name files under their home; without settings, Ivy gets its own home
    own = ["-settings", str(settings)] if settings else []
    home = [] if settings else [f"-Duser.home={cache}"]
    return Way(
        name="Ivy",
        command=[
            find_java(),
            mark(work),
            *home,
            "-cp",
            str(ivy),
            "org.apache.ivy.Main",
            *own,
            "-ivy",
            str(description),
            "-cache",
            str(cache / "cache"),
            "-retrieve",
            f"{work}/[artifact]-[revision](-[classifier]).[ext]",
        ],
        done=re.compile(r"\[SUCCESSFUL \].*!"),
        failed=re.compile(r"^\s*(?:::|\[FAILED|ERRORS?:?)\s*(.*(?:not found|error|Server|failed|FAILED).*)"),
        remedy="check ~/.ivy2/ivysettings.xml or the file that IVY_SETTINGS names (mirrors), try again",
        cache=cache,
    )


_IVY = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="rmqtools" module="jars"/>
<configurations><conf name="default"/></configurations>
<dependencies>
{dependencies}
</dependencies>
</ivy-module>
"""


def _ivy_dependency(jar: LockedJar) -> str:
    classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
    return (
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)} "
        f'transitive="false" conf="default->master"><artifact name={quoteattr(jar.artifact)} type="jar" '
        f'ext="jar"{classifier}/></dependency>'
    )


def _ivy_settings() -> Path | None:
    named = os.environ.get("IVY_SETTINGS")
    if named:
        return Path(named)
    usual = Path.home() / ".ivy2" / "ivysettings.xml"
    return usual if usual.is_file() else None


def run_way(way: Way, work: Path, log_path: Path, progress: Callable[[int], None]) -> None:
    """Run the command to its end. It ends with this process, however that ends.

    Args:
        way: what :func:`choose_way` returned.
        work: the directory that the command is marked with.
        log_path: gets the command's whole output.
        progress: called with the number of jars fetched so far.

    Raises:
        ClusterError: the command could not be started, or failed.
    """
    with Watchdog(work), log_path.open("w", encoding="utf-8") as log:
        try:
            process = subprocess.Popen(
                way.command,
                cwd=work,
                start_new_session=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise ClusterError(f"{way.command[0]} does not run ({error}): {way.remedy}") from error
        with process:
            try:
                _follow(way, process.stdout, log, progress)
                code = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
    if code != 0:
        raise ClusterError(_failure(way, code, log_path))


def _follow(way: Way, output: IO[str] | None, log: IO[str], progress: Callable[[int], None]) -> None:
    done = 0
    for line in output or ():
        log.write(line)
        if way.done.search(line):
            done += 1
            progress(done)


def _failure(way: Way, code: int, log_path: Path) -> str:
    output = log_path.read_text(encoding="utf-8")
    lines = output.splitlines() or ["no output"]
    for words, cause, remedy in _CAUSES:
        if words.search(output):
            return (
                f"{way.name} could not fetch the server's jars: {cause}: {remedy}; or copy the jars to "
                f"{log_path.parent} (all output: {log_path})"
            )
    reasons = [found[1].strip() for line in lines if (found := way.failed.search(line))]
    reason = next(filter(None, reasons), lines[-1])
    return (
        f"{way.name} could not fetch the server's jars (exit code {code}): {reason[:300]} "
        f"(all output: {log_path}): {way.remedy}"
    )
