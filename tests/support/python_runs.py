"""The table of docs/compatibility.md: what was run on each version of Python.

``python_runs.json`` has what ``python -m tools.check_python --write`` saw on each. The page shows the same; a
unit test compares the two.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.support.compatibility_page import Part, row

STORE = Path(__file__).with_name("python_runs.json")
PART = Part(
    "<!-- pythons: written by python -m tools.check_python --write -->",
    "<!-- end of pythons -->",
)
COLUMNS = ("system", "unit tests", "demo", "smoke set", "dependencies")

Runs = Mapping[str, Mapping[str, str]]  # by version of Python, such as 3.15, then by column


def load() -> dict[str, dict[str, str]]:
    """Return the outcomes of the last runs."""
    runs: dict[str, dict[str, str]] = json.loads(STORE.read_text())
    return runs


def store(version: str, run: Mapping[str, str]) -> None:
    """Keep the outcome of a run, and show it on the page."""
    runs = load() | {version: dict(run)}
    STORE.write_text(json.dumps(dict(sorted(runs.items())), indent=1) + "\n")
    PART.write(render(runs))


def render(runs: Runs) -> str:
    """Return the table: one row a version of Python."""
    lines = [row("Python", *COLUMNS), row(*["---"] * (len(COLUMNS) + 1))]
    lines += [
        row(version, *(runs[version].get(column, "not run") for column in COLUMNS))
        for version in sorted(runs)
    ]
    return "\n".join(lines)
