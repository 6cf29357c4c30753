"""Unit tests, demo and smoke set on the Python that runs this: ``python3.15 -m tools.check_python``.

A virtual environment in ``.build`` gets the locked dependencies. Where the locked version has no wheel for
this Python, the newest version that has one is installed, or the package is compiled. The rest is left out.
Needs Java 17 or newer, and a C compiler. ``--write`` adds a row to the table of docs/compatibility.md.
"""

import argparse
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support import python_runs

ROOT = Path(__file__).resolve().parents[1]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
NEWEST = max(path.stem for path in (ROOT / "rmqtools" / "cluster" / "locks").glob("?.?.?.lock"))
ENVIRONMENT = ROOT / ".build" / f"python-{VERSION}"
COMPILED: Final = ("lz4", "zstandard")
"""What rmqtools itself requires, and a C compiler makes in a minute."""
STEPS: Final = {
    "unit tests": (
        *("-m", "pytest", "-q", "-n", "2", "--dist", "loadscope", "--no-loadscope-reorder"),
        *("-m", "not slow and not broker and not process", "tests/unit", "tests/behaviour"),
    ),
    "demo": ("-m", "examples.demo"),
    "smoke set": ("-m", "pytest", "-q", "-k", NEWEST, "tests/versions/test_smoke.py"),
}
_WHEELS = "--only-binary=:all:"
_PACKAGE = re.compile(r"^([a-z0-9][\w.-]*)==(\S+)(?:\n?[ #].*)*", re.MULTILINE)
_NO_WHEEL = re.compile(r"No matching distribution found for ([\w.-]+)")
_COUNTS = re.compile(r"\d+ (?:failed|passed|skipped|errors?)")


class CheckError(Exception):
    """A step failed; the text is what it printed."""


def python(*arguments: str) -> str:
    """Run the environment's Python in this checkout; return its output.

    Raises:
        CheckError: it ended with an error.
    """
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", *arguments],
        cwd=ROOT,
        env={name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise CheckError(done.stdout)
    return done.stdout


def install_locked(packages: Collection[str], *options: str) -> None:
    """Install packages as the lock has them, with its hashes: their lines are in ``packages``."""
    with tempfile.NamedTemporaryFile("w", prefix="rmqtools-lock-", suffix=".txt") as file:
        file.write("\n".join(packages))
        file.flush()
        pip("--require-hashes", "-r", file.name, *options)


def pip(*arguments: str) -> None:
    """Install packages alone: the lock has the dependencies of each, too."""
    python("-m", "pip", "install", "--quiet", "--no-deps", *arguments)


def locked_packages(lock: str) -> dict[str, str]:
    """Return the lines of each locked package by its name."""
    return {found[1]: found[0] for found in _PACKAGE.finditer(lock)}


def install_wheels(packages: Mapping[str, str]) -> list[str]:
    """Install what has a wheel of the locked version; return the names of the others."""
    others: list[str] = []
    while True:
        try:
            install_locked([packages[name] for name in packages if name not in others], _WHEELS)
        except CheckError as error:
            others.append(name_without_wheel(error))
        else:
            return others


def name_without_wheel(error: CheckError) -> str:
    """Return the package that pip found no wheel of.

    Raises:
        CheckError: pip failed for another reason.
    """
    if (found := _NO_WHEEL.search(str(error))) is None:
        raise error
    return found[1]


def allowed_versions(project: Mapping[str, Any], name: str) -> str:
    """Return a package with the versions that pyproject.toml allows: all, if it does not name the package."""
    every = [each for extra in project["optional-dependencies"].values() for each in extra]
    return next((each for each in every if re.match(rf"{re.escape(name)}\s*[<>=]", each)), name)


def install() -> str:
    """Install dependencies and this checkout; return how the dependencies differ from the lock."""
    packages = locked_packages((ROOT / "requirements.lock").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    others = install_wheels(packages)
    compiled = [name for name in others if name in COMPILED]
    install_locked([packages[name] for name in [*compiled, "pyspark"]])
    newer, missing = list[str](), list[str]()
    for name in sorted({*others} - {*compiled, "pyspark"}):
        try:
            pip(_WHEELS, allowed_versions(project, name))
        except CheckError as error:
            missing.append(name_without_wheel(error))
        else:
            newer.append(name)
    pip("--no-build-isolation", "--editable", ".")
    return differences({"compiled": compiled, "newer": newer, "no wheel of": missing})


def differences(packages: Mapping[str, Sequence[str]]) -> str:
    """Return the cell of the table: how the dependencies differ from the lock."""
    return "; ".join(f"{how} {', '.join(names)}" for how, names in packages.items() if names) or "as locked"


def system() -> str:
    """Return the system, Python and Java of this run."""
    java = subprocess.run(("java", "-version"), capture_output=True, text=True).stderr
    major = re.search(r'version "(\d+)', java)
    name = platform.freedesktop_os_release()["PRETTY_NAME"]
    return f"{name}, Python {platform.python_version()}, Java {major[1] if major else 'missing'}"


def counts(printed: str) -> str:
    """Return the numbers of pytest's last line, such as ``20 passed, 1 skipped``."""
    return ", ".join(_COUNTS.findall(printed.strip().rpartition("\n")[2]))


def run(step: str, arguments: Sequence[str]) -> str:
    """Run a step; return what the table says of it, and print what went wrong."""
    print(f"{step}: python {' '.join(arguments)}", flush=True)
    try:
        printed = python(*arguments)
    except CheckError as error:
        print(error, flush=True)
        return "fails"
    return counts(printed) if "pytest" in arguments else "passes"


def main(arguments: Sequence[str] | None = None) -> int:
    """Install and run all; return 1 if a step fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_python", description=__doc__)
    parser.add_argument("--write", action="store_true", help="add a row to the table, if nothing fails")
    given = parser.parse_args(arguments)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a job in the background ignores it; tests send it
    if not (ENVIRONMENT / "bin" / "pip").exists():
        venv.create(ENVIRONMENT, with_pip=True, symlinks=True)
    try:
        dependencies = install()
    except CheckError as error:
        print(f"the dependencies of Python {VERSION} cannot be installed:\n{error}", file=sys.stderr)
        return 1
    outcome = {"system": system()}
    outcome |= {step: run(step, arguments) for step, arguments in STEPS.items()}
    outcome["dependencies"] = dependencies
    print(outcome)
    if "fails" in outcome.values():
        return 1
    if given.write:
        python_runs.store(VERSION, outcome)
    return 0


if __name__ == "__main__":
    sys.exit(main())
