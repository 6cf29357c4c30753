import re

import pytest

from tools.check import GATES, ROOT, choose, find_tests, remedy, shortened, steps


@pytest.mark.parametrize(
    ("path", "some"),
    [
        pytest.param("rmqtools/log.py", "tests/unit/test_log.py", id="a-module"),
        pytest.param("rmqtools/cli/produce.py", "tests/unit/cli/test_produce.py", id="in-a-folder"),
        pytest.param(
            "rmqtools/engine/connection/client.py", "tests/unit/engine/connection/test_client.py", id="deep"
        ),
        pytest.param(
            "spark_connector/read/schema.py", "tests/unit/spark_connector/read/test_schema.py", id="spark"
        ),
        pytest.param("tools/release.py", "tests/unit/tools/test_release.py", id="a-tool"),
        pytest.param(
            "rmqtools/config/producer.py", "tests/unit/config/test_client.py", id="else-of-the-folder"
        ),
        pytest.param("tests/unit/test_log.py", "tests/unit/test_log.py", id="a-test"),
    ],
)
def test_the_tests_of_a_file_stand_where_it_does(path, some):
    assert some in find_tests(path)


@pytest.mark.parametrize(
    "path", ["docs/pin.md", "tests/spark/test_copy.py", "Makefile", "tests/support/reading.py"]
)
def test_a_file_without_unit_tests_has_none(path):
    assert find_tests(path) == []


def test_code_without_a_test_beside_it_and_too_many_tests_are_noted():
    assert choose(["rmqtools/no/where.py", "docs/pin.md"]) == (
        [],
        ["note: no unit test stands where rmqtools/no/where.py does: write one, see CONTRIBUTING.md"],
    )
    tests, notes = choose(str(path.relative_to(ROOT)) for path in (ROOT / "tests/unit").rglob("test_*.py"))
    assert tests == []
    assert "run make unit" in notes[-1]


def test_every_gate_exists_and_runs_with_the_find_tests_changed_files():
    assert [gate for gate in GATES if not (ROOT / gate).exists()] == []
    assert {*GATES, "tests/unit/test_log.py"} <= {*steps(["tests/unit/test_log.py"])[-1].command}


def test_every_step_has_a_remedy_that_is_a_command():
    assert all(re.match(r"\.venv/bin/\w+", step.remedy) for step in steps([]))


OUTPUT = """FF.F [100%]
=================================== FAILURES ===================================
______________________________ test_one[a] ______________________________
[gw0] linux -- Python 3.11.7 /python
tests/unit/test_one.py:9: in test_one
    assert not lacking, f"{name} lacks {lacking}: run this"
E   AssertionError: Admin lacks ['count']: run this
______________________________ test_two ______________________________
column commitLogOffset is not on its page. Add to docs/a.md: | `commitLogOffset` |
______________________________ test_one[b] ______________________________
tests/unit/test_one.py:9: in test_one
E   AssertionError: Admin lacks ['count']: run this
=========================== short test summary info ============================
FAILED tests/unit/test_one.py::test_one[a]
FAILED tests/unit/test_two.py::test_two
FAILED tests/unit/test_one.py::test_one[b]
3 failed, 1 passed in 2.00s
"""


def test_the_reasons_of_failed_tests_are_shown_once_and_without_the_way_to_them():
    assert shortened(OUTPUT).splitlines() == [
        "AssertionError: Admin lacks ['count']: run this",
        "column commitLogOffset is not on its page. Add to docs/a.md: | `commitLogOffset` |",
        *OUTPUT.splitlines()[-4:],
    ]
    assert shortened("a.py:1: error: no such name\n") == "a.py:1: error: no such name\n"


def test_the_remedy_of_failed_tests_is_the_command_that_they_name_or_else_to_run_them_again():
    tests, style = steps([])[-1], steps([])[1]
    named = OUTPUT.replace("run this", "run .venv/bin/python -m tools.surface --write")

    assert remedy(tests, shortened(named)) == ".venv/bin/python -m tools.surface --write"
    assert remedy(tests, shortened(OUTPUT)) == (
        ".venv/bin/python -m pytest tests/unit/test_one.py tests/unit/test_two.py"
    )
    assert remedy(style, "a.py:1:1: F401") == style.remedy
