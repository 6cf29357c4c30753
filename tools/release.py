"""Makes a release: ``make release VERSION=x.y.z``.

Sets the version, dates the changelog's section, builds the wheel and the sdist, checks each of them in an
environment of its own, commits, and makes a local tag. Pushes nothing.
"""

import argparse
import datetime
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNRELEASED = "## Unreleased"
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_VERSION_LINES = {  # file -> how the line that holds the version begins
    "pyproject.toml": "version = ",
    "rmqtools/version.py": "__version__ = ",
}
_CITATION_LINE = re.compile(r"^version: \S+$", re.MULTILINE)
_BASE_CHECK = """
import importlib.metadata, rmqtools, rmqtools.aio, rmqtools.cluster
versions = {rmqtools.__version__, importlib.metadata.version("rmqtools")}
assert versions == {%r}, f"the installed package says {versions}"
"""
_SPARK_CHECK = "import pyspark_rocketmq, rmqtools.arrow, spark_connector.datasource"


class ReleaseError(Exception):
    """No release can be made; the text has reason and remedy."""


def with_version(text: str, line_start: str, version: str) -> str:
    """Return the text of a file with the version in the one line that begins with ``line_start``."""
    changed, count = re.subn(
        rf'^{re.escape(line_start)}"[^"]*"', f'{line_start}"{version}"', text, flags=re.MULTILINE
    )
    if count != 1:
        raise ReleaseError(f"{count} lines begin with {line_start!r}: want exactly one")
    return changed


def with_dated_section(changelog: str, version: str, date: datetime.date) -> str:
    """Return the changelog with what was unreleased under the version and its date.

    A section of the version that is there already stays as it is, as long as nothing is unreleased.
    """
    head, found, rest = changelog.partition(f"{UNRELEASED}\n")
    if not found:
        raise ReleaseError(f"CHANGELOG.md has no line {UNRELEASED!r}: put it above the newest section")
    entries, section, older = rest.partition("\n## ")
    has_entries = any(line.startswith("- ") for line in entries.splitlines())
    is_there = re.search(rf"^## {re.escape(version)} ", section + older, flags=re.MULTILINE) is not None
    if has_entries and is_there:
        raise ReleaseError(
            f"CHANGELOG.md has unreleased lines and a section {version}: choose another version"
        )
    if not has_entries and not is_there:
        raise ReleaseError(f"CHANGELOG.md has no line under {UNRELEASED!r}: say what is new for users")
    if is_there:
        return changelog
    return f"{head}{UNRELEASED}\n\n## {version} - {date.isoformat()}\n{entries}{section}{older}"


def pinned_versions(lock: str) -> str:
    """Return the lines ``name==version`` of a lock file, without hashes: constraints for pip."""
    return "".join(f"{line.split()[0]}\n" for line in lock.splitlines() if re.match(r"[a-z0-9]\S*==", line))


def check_version(version: str) -> None:
    """Raise ReleaseError if a text is no version."""
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"VERSION={version!r}: want x.y.z, such as 0.2.0")


def prepare(folder: Path, version: str, date: datetime.date) -> None:
    """Write version and date into the files of a checkout."""
    check_version(version)
    texts = {"CHANGELOG.md": with_dated_section((folder / "CHANGELOG.md").read_text(), version, date)}
    for name, line_start in _VERSION_LINES.items():
        texts[name] = with_version((folder / name).read_text(), line_start, version)
    texts["CITATION.cff"] = _CITATION_LINE.sub(f"version: {version}", (folder / "CITATION.cff").read_text())
    for name, text in texts.items():
        (folder / name).write_text(text)


def build(folder: Path, output: Path, version: str) -> list[Path]:
    """Build the wheel and the sdist of a checkout into an output folder."""
    output.mkdir(parents=True, exist_ok=True)
    run([sys.executable, "-m", "hatchling", "build", "-d", str(output), "-t", "wheel", "-t", "sdist"], folder)
    built = [*output.glob(f"rmqtools-{version}-*.whl"), *output.glob(f"rmqtools-{version}.tar.gz")]
    if len(built) != 2:
        found = ", ".join(path.name for path in built) or "nothing"
        raise ReleaseError(
            f"{output} has {found}, not a wheel and an sdist of {version}: see what hatchling printed"
        )
    return built


def check(package: Path, version: str, constraints: Path) -> None:
    """Install a package in an empty environment and use it: first alone, then with Spark."""
    with tempfile.TemporaryDirectory(prefix="rmqtools-release-") as folder:
        venv.create(folder, with_pip=True)
        python = f"{folder}/bin/python"
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*install, "-c", str(constraints), str(package)], folder)
        run([f"{folder}/bin/rmqtools", "--help"], folder)
        run([python, "-I", "-c", _BASE_CHECK % version], folder)
        run([python, "-I", str(ROOT / "tools" / "smoke.py")], folder)
        run([*install, "-c", str(constraints), f"{package}[spark]"], folder)
        run([python, "-I", "-c", _SPARK_CHECK], folder)


def run(command: Sequence[str], folder: str | Path) -> str:
    """Run a program in a folder; return its output.

    Raises:
        ReleaseError: it ended with an error.
    """
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(command)}\n{done.stdout}\nended with {done.returncode}: see above")
    return done.stdout


def copy_checkout(target: Path) -> None:
    """Copy all files under version control, with their changes."""
    for name in run(["git", "ls-files", "-z"], ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def release(version: str, output: Path, folder: Path) -> None:
    """Make a release out of the checkout in a folder."""
    prepare(folder, version, datetime.datetime.now(datetime.UTC).date())
    run(
        [sys.executable, "-m", "tools.surface", "--release"], folder
    )  # what changes from now on is unreleased
    packages = build(folder, output, version)
    with tempfile.NamedTemporaryFile("w", prefix="rmqtools-constraints-", suffix=".txt") as constraints:
        constraints.write(pinned_versions((folder / "requirements.lock").read_text()))
        constraints.flush()
        for package in packages:
            print(f"checking {package.name} in an empty environment", flush=True)
            check(package, version, Path(constraints.name))
    print(f"{version} is built and checked: {', '.join(str(package) for package in packages)}")


def check_tag(version: str, folder: Path) -> None:
    """Raise ReleaseError if the version was tagged before."""
    if run(["git", "tag", "--list", f"v{version}"], folder):
        raise ReleaseError(f"the tag v{version} exists: choose another version")


def commit_and_tag(version: str, folder: Path) -> None:
    """Commit the files that :func:`prepare` changed, and tag the commit."""
    run(["git", "commit", "--quiet", "--all", "--message", f"Release {version}"], folder)
    run(["git", "tag", "--annotate", f"v{version}", "--message", f"rmqtools {version}"], folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if no release could be made."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("version", help="x.y.z")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where wheel and sdist go (dist/)")
    parser.add_argument(
        "--dry-run", action="store_true", help="work on a copy and leave this checkout as it is"
    )
    given = parser.parse_args(arguments)
    try:
        check_version(given.version)
        if given.dry_run:
            with tempfile.TemporaryDirectory(prefix="rmqtools-checkout-") as copy:
                copy_checkout(Path(copy))
                release(given.version, given.output.resolve(), Path(copy))
            return 0
        if changes := run(["git", "status", "--porcelain"], ROOT):
            raise ReleaseError(f"there are changes: commit them, or use --dry-run\n{changes}")
        check_tag(given.version, ROOT)
        release(given.version, given.output.resolve(), ROOT)
        commit_and_tag(given.version, ROOT)
    except ReleaseError as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    print(f"committed, and tagged v{given.version}; nothing was pushed: git push --follow-tags")
    return 0


if __name__ == "__main__":
    sys.exit(main())
