"""Tests that pages name, such as ``unit/test_log.py::test_that``: paths below ``tests``."""

import ast
import re

from tools.sources import ROOT, tree_of

TestFunction = ast.FunctionDef | ast.AsyncFunctionDef
_NAMED = re.compile(r"`([\w/]+\.py::\w+)")


def named_tests(page: str) -> set[str]:
    """Return the tests that a page names, without their parameters."""
    return set(_NAMED.findall(page))


def find_test(test: str) -> tuple[ast.Module, TestFunction] | None:
    """Return the module and the function of a test; None: there is no such test."""
    path, _, name = test.partition("::")
    file = ROOT / "tests" / path
    if not file.exists():
        return None
    module = tree_of(file)
    found = (one for one in module.body if isinstance(one, TestFunction) and one.name == name)
    return next(((module, function) for function in found), None)


def absent_tests(page: str) -> set[str]:
    """Return the tests that a page names and that do not exist."""
    return {test for test in named_tests(page) if find_test(test) is None}
