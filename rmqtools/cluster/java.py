"""Finds the Java that runs the servers."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from rmqtools.cluster.errors import ClusterError

MIN_JAVA_VERSION = 17
_REMEDY = "install one (apt-get install default-jre-headless) or set JAVA_HOME to one"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # "1.8.0_392" is Java 8, "17.0.15" is Java 17


def find_java() -> str:
    """Return the path of a ``java`` that is new enough: JAVA_HOME's, else the first on PATH.

    Raises:
        ClusterError: there is none, it does not run, or it is older than Java 17.
    """
    java = _locate()
    version = _fetch_version(java)
    if version < MIN_JAVA_VERSION:
        raise ClusterError(f"{java} is Java {version}, Java {MIN_JAVA_VERSION} or newer is needed: {_REMEDY}")
    return java


def _locate() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if os.access(java, os.X_OK):
            return str(java)
    found = shutil.which("java")
    if found is None:
        where = f"neither in JAVA_HOME={home} nor on PATH" if home else "JAVA_HOME is not set, none on PATH"
        raise ClusterError(f"no Java found ({where}): {_REMEDY}")
    return found


def _fetch_version(java: str) -> int:
    """Ask the JVM itself; it answers on stderr."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{java} does not run ({error}): {_REMEDY}") from error
    found = _VERSION.search(answer.stderr + answer.stdout)
    if answer.returncode != 0 or found is None:
        said = (answer.stderr.strip() or "nothing").splitlines()[0]
        raise ClusterError(f"{java} -version ended with {answer.returncode} and said {said!r}: {_REMEDY}")
    return int(found[1])
