"""docs/guarantees.md: every row is complete, and is held by tests that ``make test`` runs."""

import ast
import re

import pytest

from tests.docs.blocks import DOCS
from tests.support.named_tests import find_test

COLUMNS = ["what", "how often", "after a crash", "order", "what you do"]
LOST_COLUMNS = ["what", "while only the slave is there", "when the master is back"]
TEXT = (DOCS / "guarantees.md").read_text()
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in TEXT.splitlines()
    if line.startswith("|") and not line.startswith("|---")
]
LOST = [row for row in ROWS if len(row) == len(LOST_COLUMNS) and row != LOST_COLUMNS]
GUARANTEES = [row for row in ROWS if row not in (COLUMNS, LOST_COLUMNS) and row not in LOST]
NOTES = dict(re.findall(r"^\[\^(\d+)\]: (.*)$", TEXT, re.MULTILINE))
TESTS = sorted({test for note in NOTES.values() for test in re.findall(r"`([^`]*::[^`]*)`", note)})


def is_slow(node: ast.expr) -> bool:
    """Return whether a mark, or one of a list, moves a whole test to ``make test-long``."""
    marks = node.elts if isinstance(node, ast.List) else [node]
    return any(ast.unparse(mark) == "pytest.mark.slow" for mark in marks)


def noted_tests(row: list[str]) -> list[str]:
    """Return the tests that the note of a row names."""
    (number,) = re.findall(r" \[\^(\d+)\]$", row[0])
    return re.findall(r"`([^`]*::[^`]*)`", NOTES[number])


def test_there_are_four_tables_with_a_row_for_each_way():
    assert ROWS.count(COLUMNS) == 4  # sending, consuming, Spark, once
    assert len(GUARANTEES) >= 25


@pytest.mark.parametrize("row", GUARANTEES, ids=lambda row: row[0].replace("`", ""))
def test_a_row_has_every_column_filled_says_how_often_and_names_a_test(row):
    assert len(row) == len(COLUMNS)
    assert all(row)
    assert re.match(r"(at most|at least|exactly) once", row[1])
    assert noted_tests(row)


@pytest.mark.parametrize("row", LOST, ids=lambda row: row[0].replace("`", ""))
def test_a_row_about_a_lost_master_has_every_column_filled_and_names_a_test(row):
    assert all(row)
    assert noted_tests(row)


def test_every_note_belongs_to_one_place():
    places = re.findall(r"\[\^(\d+)\](?!:)", TEXT)

    assert places == sorted(NOTES, key=int) == [str(number + 1) for number in range(len(NOTES))]


@pytest.mark.parametrize("test", TESTS)
def test_a_test_that_a_row_names_is_there_and_is_run_by_make_test(test):
    found = find_test(test)
    assert found is not None
    module, function = found
    marks = [
        one.value
        for one in module.body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "pytestmark"
    ]

    assert not any(map(is_slow, [*marks, *function.decorator_list]))
