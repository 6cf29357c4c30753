"""docs/guarantees.md: every row is complete, and is held by tests that ``make test`` runs."""

import ast
import re

import pytest

from tests.docs.blocks import DOCS, ROOT

COLUMNS = ["way", "how often", "after a crash", "order", "what you do", "test"]
LOST_COLUMNS = ["what", "while only the slave is there", "when the master is back", "test"]
TEXT = (DOCS / "guarantees.md").read_text()
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in TEXT.splitlines()
    if line.startswith("|") and not line.startswith("|---")
]
LOST = [row for row in ROWS if len(row) == len(LOST_COLUMNS) and row != LOST_COLUMNS]
GUARANTEES = [row for row in ROWS if row not in (COLUMNS, LOST_COLUMNS) and row not in LOST]
TESTS = sorted(set(re.findall(r"`([^`]*::[^`]*)`", TEXT)))


def is_slow(node: ast.expr) -> bool:
    """Return whether a mark, or one of a list, moves a whole test to ``make test-long``."""
    marks = node.elts if isinstance(node, ast.List) else [node]
    return any(ast.unparse(mark) == "pytest.mark.slow" for mark in marks)


def test_there_are_four_tables_with_a_row_for_each_way():
    assert ROWS.count(COLUMNS) == 4  # sending, consuming, Spark, once
    assert len(GUARANTEES) >= 25


@pytest.mark.parametrize("row", GUARANTEES, ids=lambda row: row[0].replace("`", ""))
def test_a_row_has_every_column_filled_says_how_often_and_names_a_test(row):
    assert len(row) == len(COLUMNS)
    assert all(row)
    assert re.match(r"(at most|at least|exactly) once", row[1])
    assert "::" in row[-1]


@pytest.mark.parametrize("row", LOST, ids=lambda row: row[0].replace("`", ""))
def test_a_row_about_a_lost_master_has_every_column_filled_and_names_a_test(row):
    assert all(row)
    assert "::" in row[-1]


@pytest.mark.parametrize("test", TESTS)
def test_a_test_that_a_row_names_is_there_and_is_run_by_make_test(test):
    path, _, name = test.partition("::")
    module = ast.parse((ROOT / "tests" / path).read_text())
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    (function,) = (one for one in module.body if isinstance(one, kinds) and one.name == name)
    marks = [
        one.value
        for one in module.body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "pytestmark"
    ]

    assert not any(map(is_slow, [*marks, *function.decorator_list]))
