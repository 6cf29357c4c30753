"""The hooks before a commit run what ``make lint`` runs."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text()


def test_the_hooks_run_the_lines_of_make_lint():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert recipe is not None
    lines = [line.removeprefix("\t@$(BIN)/") for line in recipe[1].splitlines()]

    assert re.findall(r"entry: \.venv/bin/(.*)", HOOKS) == lines


def test_the_hooks_fetch_nothing():
    assert re.findall(r"- repo: (.*)", HOOKS) == ["local"]
    assert set(re.findall(r"language: (.*)", HOOKS)) == {"system"}
