import importlib.util
import subprocess
import sys
import zipfile

import pytest

from rmqtools.errors import ConfigError
from spark_connector.worker.pyspark_archive import compile_archive, find_archive, is_compiled

SOURCES = {"pyspark/__init__.py": "", "pyspark/inner.py": "WORD = 'source'", "pyspark/broken.py": "def"}


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in SOURCES.items():
            packed.writestr(name, text)
    return path


def imported(archive):
    """The file that a process imports from the archive, and what is in it."""
    code = "import pyspark.inner as inner; print(inner.__file__.split('.zip')[1], inner.WORD)"
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.process
def test_processes_import_bytecode_once_an_archive_is_compiled(archive):
    assert (is_compiled(archive), imported(archive)) == (False, ["/pyspark/inner.py", "source"])

    compile_archive(archive)

    assert (is_compiled(archive), imported(archive)) == (True, ["/pyspark/inner.pyc", "source"])
    assert [path.name for path in archive.parent.iterdir()] == ["pyspark.zip"]


def test_what_is_in_an_archive_stays_where_it_is_for_processes_that_read_it(archive):
    with zipfile.ZipFile(archive) as packed:
        before = {one.filename: one.header_offset for one in packed.infolist()}

    compile_archive(archive)

    with zipfile.ZipFile(archive) as packed:
        after = {one.filename: one.header_offset for one in packed.infolist()}
    assert before.items() <= after.items()


def test_bytecode_of_another_python_counts_as_none_and_is_replaced(archive):
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr("pyspark/__init__.pyc", b"\0" * 16)
    assert not is_compiled(archive)

    compile_archive(archive)

    assert is_compiled(archive)
    with zipfile.ZipFile(archive) as packed:
        assert packed.read("pyspark/__init__.pyc")[:4] == importlib.util.MAGIC_NUMBER


def test_an_archive_that_is_not_there_is_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    with pytest.raises(ConfigError, match=r"pyspark\.zip does not exist: set SPARK_HOME"):
        find_archive()


def test_an_archive_that_is_none_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"x\.zip cannot be replaced"):
        compile_archive(tmp_path / "x.zip")
