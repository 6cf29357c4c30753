"""What the doctor says of the packages of Spark's workers."""

from importlib.metadata import version

import pytest

from rmqtools.compiled import state
from spark_connector.doctor import _lines, _versions_line, main
from spark_connector.worker.interpreter import PACKAGES, Interpreter


def workers(**versions):
    return Interpreter("python3", "/usr/bin/python3", "3.11.7", (), versions, {})


def test_workers_with_another_rmqtools_than_the_driver_are_a_problem():
    is_well, what, found = _versions_line(workers(rmqtools="0.0.1"))

    assert (is_well, what) == (False, "workers' packages")
    assert found == (
        f"rmqtools 0.0.1, the driver has {version('rmqtools')}: install the same version for both"
    )


def test_the_state_of_the_compiled_module_is_said_before_spark_starts():
    lines = [next(found) for found in [_lines(None, None)] for _ in range(2 + len(PACKAGES))]

    assert lines[-1] == (True, "compiled module", state())


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        pytest.param({"pyarrow": "26.0.1"}, "pyarrow 26.0.1", id="one"),
        pytest.param({}, "files on the path, without versions", id="none"),
    ],
)
def test_other_workers_are_well(versions, text):
    assert _versions_line(workers(**versions)) == (True, "workers' packages", text)


def test_an_archive_that_cannot_be_compiled_is_a_problem_with_its_remedy(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    assert main(["--compile"]) == 1
    assert capsys.readouterr().out.startswith("!!  PySpark's archive:")
