"""What the check of one Python reads: the lock, pip's words and pytest's."""

import pytest

from tools.check_python import (
    CheckError,
    allowed_versions,
    counts,
    differences,
    locked_packages,
    name_without_wheel,
)

LOCK = """# written by a program
lz4==4.4.5 \\
    --hash=sha256:01 \\
    --hash=sha256:02
    # via rmqtools (pyproject.toml)
numpy==2.4.6 \\
    --hash=sha256:03
    # via
    #   matplotlib

# the last ones
setuptools==84.2.1 \\
    --hash=sha256:04
"""


def test_each_locked_package_keeps_its_hashes_and_no_others():
    packages = locked_packages(LOCK)

    assert list(packages) == ["lz4", "numpy", "setuptools"]
    assert [packages[name].count("--hash") for name in packages] == [2, 1, 1]


def test_the_package_that_has_no_wheel_is_read_from_the_words_of_pip():
    printed = "ERROR: Could not find a version\nERROR: No matching distribution found for lz4==4.4.5\n"

    assert name_without_wheel(CheckError(printed)) == "lz4"


def test_another_error_of_pip_ends_the_check():
    with pytest.raises(CheckError, match="no space left"):
        name_without_wheel(CheckError("no space left"))


def test_a_newer_version_stays_in_the_range_of_the_project():
    project = {"optional-dependencies": {"dev": ["pandas>=2.2,<3", "pandas-stubs>=1"]}}

    assert allowed_versions(project, "pandas") == "pandas>=2.2,<3"
    assert allowed_versions(project, "contourpy") == "contourpy"


@pytest.mark.parametrize(
    ("packages", "cell"),
    [
        ({"compiled": [], "newer": []}, "as locked"),
        ({"compiled": ["lz4"], "newer": [], "no wheel of": ["a", "b"]}, "compiled lz4; no wheel of a, b"),
    ],
)
def test_the_table_names_the_dependencies_that_are_not_as_locked(packages, cell):
    assert differences(packages) == cell


def test_the_numbers_of_the_last_line_of_pytest_are_kept():
    assert counts("starts\n1 failed in a test\n20 passed, 3 skipped in 12.31s\n") == "20 passed, 3 skipped"
