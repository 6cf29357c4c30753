"""``make check``: what a change must pass before a commit, in about a minute, without a broker.

python -m tools.check  # the files that differ from the last commit
python -m tools.check --since origin/main  # those that differ from another commit

It runs ruff and mypy, the tests in :data:`GATES` (layers, names, pages, generated files, the public surface
and its lines in CHANGELOG.md), and the unit tests of the files that changed. Each failure ends with a
command that helps. Tests of a module stand where the module does, below ``tests/unit``: that is the map.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from rmqtools.clock import SYSTEM_CLOCK

ROOT: Final = Path(__file__).resolve().parents[1]
GATES: Final = (
    "tests/unit/test_architecture.py",
    "tests/unit/test_claims.py",
    "tests/unit/test_plain_english.py",
    "tests/unit/test_pre_commit.py",
    "tests/unit/test_public_names.py",
    "tests/unit/arrow/test_decode_columns.py",
    "tests/unit/cli/test_hostile_text.py",
    "tests/unit/cli/root/test_commands_words.py",
    "tests/unit/contract/test_vectors.py",
    "tests/unit/policy/test_severity.py",
    "tests/unit/spark_connector/options/test_option_table.py",
    "tests/unit/tools/test_blocking_classes.py",
    "tests/unit/tools/test_file_map.py",
    "tests/unit/tools/test_reference_pages.py",
    "tests/unit/tools/test_site_pages.py",
    "tests/unit/tools/test_surface.py",
)
_SHOWN: Final = 12  # failed tests
_MOST_TESTS: Final = 40  # files of tests: more are no quick check


class Step(NamedTuple):
    """A program of the check, and the command that helps if it fails, unless its output names one."""

    name: str
    command: Sequence[str]
    remedy: str


def steps(tests: Sequence[str]) -> list[Step]:
    """Return the steps; ``tests`` are those of the changed files."""
    python = ".venv/bin/python"
    marks = ["-m", "not slow and not broker and not docker and not spark"]
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        *marks,
    ]
    files = sorted({*GATES, *tests})
    return [
        Step("format", [_program("ruff"), "format", "--check", "."], ".venv/bin/ruff format ."),
        Step("style", [_program("ruff"), "check", "."], ".venv/bin/ruff check --fix ."),
        Step("types", [_program("mypy")], ".venv/bin/mypy  # correct the lines above"),
        Step(
            "gates and tests",
            [*run, "-n", "2", "--dist", "loadscope", *files],
            f"{python} -m pytest",
        ),
    ]


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def changed_files(since: str) -> list[str]:
    """Return the paths that differ from a commit, new ones included."""
    tracked = _git("diff", "--name-only", "--diff-filter=d", since)
    return sorted({*tracked, *_git("ls-files", "--others", "--exclude-standard")})


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def find_tests(path: str) -> list[str]:
    """Return the unit tests of a changed file: a test itself, a module's, or else its folder's."""
    file = Path(path)
    if file.name.startswith("test_") and path.startswith(("tests/unit/", "tests/behaviour/")):
        return [path]
    first, *folders = file.parent.parts or [""]
    is_code = file.suffix in (".py", ".c", ".h")
    if not is_code or first not in ("rmqtools", "spark_connector", "tools", "examples"):
        return []
    home = ROOT.joinpath("tests", "unit", *([] if first == "rmqtools" else [first]), *folders)
    name = file.parent.name if file.stem == "__init__" else file.stem
    found = [*home.glob(f"test_{name}.py"), *home.glob(f"test_{name}_*.py"), *home.glob(f"{name}/test_*.py")]
    return sorted(str(test.relative_to(ROOT)) for test in found or home.glob("test_*.py"))


def choose(changed: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the tests of changed files, and a note for each file of code that no unit test mirrors."""
    found = {path: find_tests(path) for path in changed}
    tests = sorted({test for each in found.values() for test in each})
    packages = ("rmqtools/", "spark_connector/")
    notes = [
        f"note: no unit test stands where {path} does: write one, see CONTRIBUTING.md"
        for path, each in found.items()
        if not each
        and path.startswith(packages)
        and path.endswith(".py")
        and not path.endswith("__init__.py")
    ]
    if len(tests) > _MOST_TESTS:
        notes.append(f"note: {len(tests)} files of tests are too many for a check: run make unit")
        tests = []
    return tests, notes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; return 0 if all of it passed."""
    parser = argparse.ArgumentParser(prog="python -m tools.check", description="What make check runs.")
    parser.add_argument("--since", default="HEAD", help="the commit that files are compared with (HEAD)")
    begin = SYSTEM_CLOCK.monotonic()
    tests, notes = choose(changed_files(parser.parse_args(arguments).since))
    with ThreadPoolExecutor() as pool:
        failed = [(step, output) for step, output in pool.map(_run, steps(tests)) if output]
    for note in notes:
        print(note)
    seconds = SYSTEM_CLOCK.monotonic() - begin
    outcome = f"{len(failed)} of 4 steps failed" if failed else "passed"
    print(f"make check: {outcome}, {seconds:.0f} s, with the tests of {len(tests)} files beside the gates")
    for step, output in failed:
        print(f"remedy for {step.name}: {remedy(step, output)}")
    print("It leaves out tests on brokers, Spark and Docker, and other files' tests: make unit, make test.")
    return int(bool(failed))


def shortened(output: str) -> str:
    """Return each reason in an output of pytest once, and the failed tests; other output as it is."""
    lines = output.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    if not failed:
        return output
    at = next(
        number for number, line in enumerate(lines) if line.startswith("=") and line.strip("= ").isupper()
    )
    reasons = dict.fromkeys(line.removeprefix("E   ") for line in lines[at + 1 : lines.index(failed[0])])
    told = [line for line in reasons if not _is_frame(line)]
    more = [f"... and {len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []
    return "\n".join([*told, *failed[:_SHOWN], *more, lines[-1]])


def _is_frame(line: str) -> bool:
    """Return whether a line of a traceback says where, not why."""
    return not line.strip() or bool(
        re.match(r"[\w/.-]+\.py:\d+: in |\[gw\d+\]|_+ .* _+$|During handling|    |=", line)
    )


def remedy(step: Step, output: str) -> str:
    """Return the commands that failed tests name; else the step's own, with the files of those tests."""
    files = dict.fromkeys(re.findall(r"^(?:FAILED|ERROR) ([^:\s]+)", output, re.MULTILINE))
    if not files:
        return step.remedy
    named = dict.fromkeys(re.findall(r"\.venv/bin/python -m tools\.\w+(?: --\w+)?", output))
    return ", ".join(named) or " ".join([step.remedy, *files])


def _run(step: Step) -> tuple[Step, str]:
    """Run a step; return its output if it failed, else nothing."""
    done = subprocess.run(step.command, cwd=ROOT, capture_output=True, text=True)
    if not done.returncode:
        return step, ""
    output = shortened(done.stdout + done.stderr) or f"exit code {done.returncode}"
    print(f"--- {step.name}\n{output}", flush=True)
    return step, output


if __name__ == "__main__":
    sys.exit(main())
