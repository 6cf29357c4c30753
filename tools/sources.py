"""The sources of the project, parsed once per process: the gates of ``make check`` share them."""

import ast
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("rmqtools", "spark_connector")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a file as a tree. It is shared: do not change it."""
    return ast.parse(path.read_text())


def files_of(*rooms: str) -> list[Path]:
    """Return the Python files below some folders of the project, in the order of their paths."""
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))
