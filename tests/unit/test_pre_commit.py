"""The hook before a commit runs what ``make check`` runs, and so does CI on a push."""

import re
from pathlib import Path

from tools.check import steps

ROOT = Path(__file__).resolve().parents[2]
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


def recipe(target: str) -> list[str]:
    """The lines of a target, each without its folder and variables."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)
    assert found is not None
    lines = [line.removeprefix("\t@$(BIN)/") for line in found[1].splitlines()]
    return [line.partition(" $(if")[0] for line in lines]


def test_the_hook_runs_the_line_of_make_check():
    assert re.findall(r"entry: \.venv/bin/(.*)", HOOKS) == recipe("check")


def test_a_check_runs_the_lines_of_make_lint():
    ran = [" ".join([step.command[0].rpartition("/")[2], *step.command[1:]]) for step in steps([])]

    assert {*recipe("lint")} <= {*ran}


def test_every_push_runs_a_check():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()

    assert "  push:\n" in workflow
    assert "make check" in workflow


def test_the_hook_fetches_nothing():
    assert re.findall(r"- repo: (.*)", HOOKS) == ["local"]
    assert set(re.findall(r"language: (.*)", HOOKS)) == {"system"}
