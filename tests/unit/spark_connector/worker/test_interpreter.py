"""The Python that Spark starts is looked at by starting it."""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkAttributeError

from rmqtools.errors import ConfigError
from spark_connector import register
from spark_connector.worker.interpreter import PACKAGES, check_worker_python, inspect_python

# The interpreter that the virtual environment was made of.
BARE = sys._base_executable  # type: ignore[attr-defined]  # not in typeshed


@pytest.mark.process
def test_this_python_lacks_nothing():
    found = inspect_python(sys.executable, path=str(Path.cwd()))

    assert found is not None
    assert (found.missing, found.version) == ((), sys.version.split()[0])
    assert found.versions == {name: version(name) for name in PACKAGES}


def test_a_python_that_is_not_there_or_does_not_start_is_none(tmp_path):
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)

    assert inspect_python("no-such-python") is None
    assert inspect_python(str(broken)) is None


@pytest.mark.process
def test_broken_neighbours_are_named_with_their_error(tmp_path):
    (tmp_path / "pyspark_zzz.py").write_text("raise ImportError('broken on purpose')")

    found = inspect_python(BARE, path=str(tmp_path), import_neighbours=True)
    alone = inspect_python(BARE, path=str(tmp_path))

    assert found is not None
    assert alone is not None
    assert found.broken["pyspark_zzz"] == "ImportError: broken on purpose"
    assert alone.broken == {}


class Session:
    """A session that starts this Python, with these added files."""

    def __init__(self, name, *added) -> None:
        self.sparkContext = SimpleNamespace(pythonExec=name, _python_includes=list(added))


@pytest.fixture
def no_path(monkeypatch, tmp_path):
    from pyspark import SparkFiles

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    return tmp_path


@pytest.mark.process
def test_a_session_whose_python_lacks_the_package_is_refused_with_the_remedy(no_path):
    with pytest.raises(ConfigError, match=r"has no module .*rmqtools.*PYSPARK_PYTHON") as error:
        register(Session(BARE))

    assert BARE in str(error.value)
    assert f"os.environ['PYSPARK_PYTHON'] = '{sys.executable}'" in str(error.value)


@pytest.mark.process
def test_files_added_to_the_session_count(no_path):
    for name in ("rmqtools", "spark_connector", "pyarrow"):
        (no_path / "added" / name).mkdir(parents=True)
        (no_path / "added" / name / "__init__.py").touch()

    check_worker_python(Session(BARE, "added"))


def test_a_session_that_cannot_tell_is_let_pass(no_path):
    class Remote:
        @property
        def sparkContext(self):
            raise PySparkAttributeError("not on Spark Connect")

    check_worker_python(Remote())
    check_worker_python(Session("no-such-python"))
    check_worker_python(Session(sys.executable))
    assert os.environ.get("PYTHONPATH") is None
