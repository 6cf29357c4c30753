"""docs/compatibility.md has the table that refusals are made from, and names tests that exist."""

from pathlib import Path

from rmqtools.compatibility import feature_rows
from tests.support.named_tests import absent_tests

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "compatibility.md").read_text()


def documented() -> list[list[str]]:
    table = PAGE.partition("<!-- features -->")[2].partition("<!-- end of features -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_has_every_row_of_the_table_with_the_same_words() -> None:
    assert [tuple(row[:3]) for row in documented()] == feature_rows()


def test_every_row_names_tests_that_exist() -> None:
    assert {test for row in documented() for test in absent_tests(row[3])} == set()
    assert all("::" in row[3] for row in documented())
