import datetime
import hashlib
import os
import re
import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.tags import Tag, compatible_tags, cpython_tags

import hatch_build
import rmqtools
from tools.release import (
    ROOT,
    UNRELEASED,
    ReleaseError,
    build,
    check_tag,
    commit_and_tag,
    main,
    pinned_versions,
    prepare,
    run,
    with_dated_section,
    with_version,
)

DAY = datetime.date(2026, 12, 24)
CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\n### Added\n- A door.\n\n## 0.1.0 - 2026-11-01\n\n### Added\n- A wall.\n"
)
DATED = (
    "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-12-24\n\n### Added\n- A door.\n\n"
    "## 0.1.0 - 2026-11-01\n\n### Added\n- A wall.\n"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that a release reads."""
    (tmp_path / "rmqtools").mkdir()
    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CITATION.cff",
        "pyspark_rocketmq.py",
        "rmqtools_program.py",
        "hatch_build.py",
        "rmqtools/version.py",
    ):
        shutil.copy2(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


@pytest.fixture
def whole_checkout(checkout: Path) -> Path:
    """With the packages, so that it can be built."""
    for package in ("rmqtools", "spark_connector"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, checkout / package, ignore=ignored, dirs_exist_ok=True)
    return checkout


def test_the_version_changes_in_its_own_line_only():
    text = 'version = "0.1.0"\npython_version = "3.11"\n'

    assert with_version(text, "version = ", "0.2.0") == 'version = "0.2.0"\npython_version = "3.11"\n'


def test_a_file_without_a_version_is_refused():
    with pytest.raises(ReleaseError, match="0 lines begin with 'version = '"):
        with_version("name = 'x'\n", "version = ", "0.2.0")


def test_unreleased_lines_move_under_the_version_and_its_date():
    assert with_dated_section(CHANGELOG, "0.2.0", DAY) == DATED


def test_a_section_that_is_dated_already_stays():
    assert with_dated_section(DATED, "0.2.0", datetime.date(2027, 1, 1)) == DATED


@pytest.mark.parametrize(
    ("changelog", "version", "text"),
    [
        pytest.param("# Changelog\n", "0.2.0", "no line '## Unreleased'", id="no-section"),
        pytest.param(DATED, "0.3.0", "say what is new", id="nothing-new"),
        pytest.param(CHANGELOG, "0.1.0", "choose another version", id="released-before"),
    ],
)
def test_a_changelog_that_says_nothing_of_the_version_is_refused(changelog, version, text):
    with pytest.raises(ReleaseError, match=text):
        with_dated_section(changelog, version, DAY)


@pytest.mark.parametrize("version", ["1.0", "v1.0.0", "1.0.0rc1", ""])
def test_a_version_that_is_not_three_numbers_is_refused_before_a_file_changes(checkout, version):
    before = (checkout / "pyproject.toml").read_text()

    with pytest.raises(ReleaseError, match=r"want x\.y\.z"):
        prepare(checkout, version, DAY)

    assert (checkout / "pyproject.toml").read_text() == before


def test_preparing_writes_version_and_date_into_the_files_that_have_them(checkout):
    prepare(checkout, "7.8.9", DAY)

    assert 'version = "7.8.9"' in (checkout / "pyproject.toml").read_text()
    assert '__version__ = "7.8.9"' in (checkout / "rmqtools/version.py").read_text()
    assert "\nversion: 7.8.9\n" in (checkout / "CITATION.cff").read_text()
    assert "## 7.8.9 - 2026-12-24" in (checkout / "CHANGELOG.md").read_text()


@pytest.mark.process
def test_the_wheel_and_the_sdist_are_built_with_the_version(whole_checkout, tmp_path):
    prepare(whole_checkout, "7.8.9", DAY)

    built = build(whole_checkout, tmp_path / "out", "7.8.9")

    wheel, sdist = built
    assert wheel.name.startswith("rmqtools-7.8.9-cp311-abi3-")
    assert sdist.name == "rmqtools-7.8.9.tar.gz"
    typed = {"rmqtools/py.typed", "spark_connector/py.typed"}
    assert {"rmqtools/compiled/_twins.abi3.so", *typed} <= {*ZipFile(wheel).namelist()}


@pytest.mark.parametrize(
    ("version", "abi", "platform", "tag"),
    [
        pytest.param((3, 11), "cp311", "linux_x86_64", "cp311-abi3-linux_x86_64", id="3.11"),
        pytest.param((3, 15), "cp315", "linux_aarch64", "cp311-abi3-linux_aarch64", id="3.15"),
        pytest.param((3, 12), "cp312", "linux_i686", "cp311-abi3-linux_i686", id="32-bits"),
        pytest.param((3, 14), "cp314t", "linux_x86_64", None, id="free-threaded"),
    ],
)
def test_the_tag_of_a_wheel_follows_the_interpreter_that_builds_it(monkeypatch, version, abi, platform, tag):
    platforms = [f"manylinux_2_36_{platform.partition('_')[2]}", platform]
    monkeypatch.setattr(hatch_build, "sys_tags", lambda: cpython_tags(version, [abi], platforms))

    assert hatch_build.wheel_tag() == tag


def test_another_implementation_of_python_gets_a_wheel_without_the_module(monkeypatch):
    tags = [
        Tag("pp311", "pypy311_pp73", "linux_x86_64"),
        *compatible_tags((3, 11), "pp311", ["linux_x86_64"]),
    ]
    monkeypatch.setattr(hatch_build, "sys_tags", lambda: tags)

    assert hatch_build.wheel_tag() is None


@pytest.mark.process
def test_without_a_compiler_the_wheel_is_pure_python(whole_checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "/no/compiler")

    wheel, _ = build(whole_checkout, tmp_path / "out", rmqtools.__version__)

    assert wheel.name.endswith("-py3-none-any.whl")
    assert [name for name in ZipFile(wheel).namelist() if name.endswith(".so")] == []


@pytest.mark.slow  # it builds twice
@pytest.mark.process
def test_a_build_of_the_same_files_in_another_folder_at_another_time_has_equal_bytes(
    whole_checkout, tmp_path_factory
):
    version, other = rmqtools.__version__, tmp_path_factory.mktemp("other") / "checkout"
    shutil.copytree(whole_checkout, other)
    for path in [path for path in other.rglob("*") if path.is_file()]:
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o664)

    built = [build(folder, folder / "out", version) for folder in (whole_checkout, other)]

    digests = [[hashlib.sha256(path.read_bytes()).hexdigest() for path in paths] for paths in built]
    assert digests[0] == digests[1]


def test_constraints_are_the_locks_versions_without_hashes():
    lock = "# made by make lock\nlz4==4.4.5 \\\n    --hash=sha256:12\n    # via rmqtools\nrich==14.0\n"

    assert pinned_versions(lock) == "lz4==4.4.5\nrich==14.0\n"


def test_the_packages_version_is_the_projects():
    assert f'\nversion = "{rmqtools.__version__}"\n' in (ROOT / "pyproject.toml").read_text()
    assert f"\nversion: {rmqtools.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_changelog_has_a_place_for_new_lines_and_dates_for_all_others():
    sections = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]

    assert sections[0] == UNRELEASED
    assert [
        line for line in sections[1:] if not re.fullmatch(r"## \d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", line)
    ] == []


@pytest.mark.process
def test_a_release_is_committed_and_tagged_here_and_a_tagged_version_is_refused(checkout, monkeypatch):
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A. Maker")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "maker@example.org")
    run(["git", "init", "--quiet"], checkout)
    run(["git", "add", "--all"], checkout)
    run(["git", "commit", "--quiet", "--message", "Before"], checkout)
    check_tag("7.8.9", checkout)
    prepare(checkout, "7.8.9", DAY)

    commit_and_tag("7.8.9", checkout)

    assert run(["git", "log", "--format=%s", "v7.8.9"], checkout) == "Release 7.8.9\nBefore\n"
    assert run(["git", "status", "--porcelain"], checkout) == ""
    with pytest.raises(ReleaseError, match=r"the tag v7\.8\.9 exists"):
        check_tag("7.8.9", checkout)


@pytest.mark.process  # it works for seconds
def test_a_release_that_cannot_be_made_says_why_and_ends_with_1(capsys, tmp_path):
    assert main(["not-a-version", "--dry-run", "--output", str(tmp_path)]) == 1
    assert "no release: VERSION='not-a-version': want x.y.z" in capsys.readouterr().err
