"""docs/compatibility.md has the table that refusals are made from, and names tests that exist."""

import re
from pathlib import Path

from rmqtools.compatibility import feature_rows

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "compatibility.md").read_text()


def documented() -> list[list[str]]:
    table = PAGE.partition("<!-- features -->")[2].partition("<!-- end of features -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_has_every_row_of_the_table_with_the_same_words() -> None:
    assert [tuple(row[:3]) for row in documented()] == feature_rows()


def test_every_row_names_tests_that_exist() -> None:
    named = {(path, name) for row in documented() for path, name in re.findall(r"`(\S+?)::(\w+)`", row[3])}
    missing = {
        (path, name) for path, name in named if f"def {name}(" not in (ROOT / "tests" / path).read_text()
    }

    assert missing == set()
    assert all("::" in row[3] for row in documented())
