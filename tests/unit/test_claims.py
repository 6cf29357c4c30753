"""README and pyproject.toml claim what docs/compatibility.md shows; CONTRIBUTING cites files that exist."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from rmqtools.cluster.lock import locked_versions
from tests.support import python_runs
from tests.support.named_tests import absent_tests, named_tests
from tests.versions import table
from tests.versions.features import FEATURES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_the_page_shows_the_outcomes_of_the_last_runs():
    assert table.PART.shown() == table.render(table.load())
    assert python_runs.PART.shown() == python_runs.render(python_runs.load())


def test_every_feature_was_run_on_every_version_that_can_be_started():
    assert {version: list(features) for version, features in table.load().items()} == {
        version: list(FEATURES) for version in locked_versions()
    }


def test_the_readme_claims_the_first_and_the_last_version_that_were_run():
    first, *_, last = (version.rpartition(".")[0] for version in sorted(table.load()))

    assert f"Apache RocketMQ {first} – {last}" in README


def test_the_classifiers_and_the_readme_name_the_pythons_that_were_run():
    run = list(python_runs.load())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classified = [each.rpartition(" ")[2] for each in project["classifiers"] if ":: Python :: 3." in each]

    assert classified == run
    assert f"run on {', '.join(run[:-1])} and {run[-1]}" in README


def test_contributing_cites_files_that_exist():
    quoted = re.findall(r"`([\w.-]+/[\w./-]+)`", (ROOT / "CONTRIBUTING.md").read_text())
    cited = {path for path in quoted if (ROOT / path.partition("/")[0]).is_dir()}

    assert len(cited) > 20
    assert {path for path in cited if not (ROOT / path).exists()} == set()


def test_every_test_that_sees_a_fault_exists():
    page = (ROOT / "tests/faults.md").read_text()

    assert len(named_tests(page)) > 100
    assert absent_tests(page) == set()


@pytest.mark.process  # git
def test_the_commits_that_contributing_shows_for_each_kind_are_small():
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("Small commits")[2].partition("\n## ")[0]
    commits = re.findall(r"^\| [^|]+ \| ([0-9a-f]{7}) \|", table, re.MULTILINE)
    if subprocess.run(
        ["git", "cat-file", "-e", commits[0]], cwd=ROOT, capture_output=True, check=False
    ).returncode:
        pytest.skip("these files have no history here")
    show = ["git", "show", "--name-only", "--format="]
    files = {
        commit: subprocess.run(
            [*show, commit], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
        for commit in commits
    }

    assert len(files) > 5
    assert {commit: len(names) for commit, names in files.items() if not 1 < len(names) <= 20} == {}


def test_the_list_of_decisions_has_each_file_once_with_its_title():
    folder = ROOT / "docs/decisions"
    listed = re.findall(
        r"^\| \[(\d{4})\]\((\S+)\) \| (.+) \|$", (folder / "README.md").read_text(), re.MULTILINE
    )
    written = [(path.name, path.read_text().partition("\n")[0]) for path in sorted(folder.glob("0*.md"))]

    assert [(name, f"# {number} {title}") for number, name, title in listed] == written
    assert len({name[:4] for name, _ in written}) == len(written)
