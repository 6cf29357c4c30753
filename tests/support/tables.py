"""Tables in Markdown as data of tests."""

import re
from pathlib import Path

_BAR = re.compile(r"(?<!\\)\|")


def table_rows(path: Path) -> list[list[str]]:
    r"""Return the cells of the table in a file, without its head. A bar inside of a cell stays ``\|``."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in _BAR.split(line)[1:-1]] for line in lines[1:]]
