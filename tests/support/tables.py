"""Tables in Markdown as data of tests."""

import re
from pathlib import Path

_BAR = re.compile(r"(?<!\\)\|")


def table_rows(path: Path) -> list[list[str]]:
    r"""Return the cells of the table in a file, without its head; a bar in a cell is written ``\|``."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip().replace(r"\|", "|") for cell in _BAR.split(line)[1:-1]] for line in lines[1:]]


def quoted(cell: str) -> list[str]:
    """Return the texts between backticks in a cell."""
    return re.findall("`([^`]*)`", cell)


def lacking(text: str, cell: str) -> list[str]:
    """Return the quoted texts of a cell that a text does not contain; a cell quotes at least one."""
    parts = quoted(cell)
    assert parts, f"{cell!r} quotes nothing: put parts of the error between backticks"
    return [part for part in parts if part not in text]
