"""The pytest plugin, as pytest runs it in the projects of ``tests/support/user_project``."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROJECT = ROOT / "tests/support/user_project"
PAGE = ROOT / "docs/testing.md"
RunPytest = Callable[..., tuple[str, int]]

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def run_pytest(tmp_path_factory: pytest.TempPathFactory) -> RunPytest:
    """``run_pytest(file, *arguments)``: what pytest prints of a project with that file, and its exit code.

    ``more``: a second file of tests.
    """

    def run(file: str, *arguments: str, more: str = "") -> tuple[str, int]:
        folder = tmp_path_factory.mktemp("project")
        (folder / "test_more.py").write_text(more)
        shutil.copy(PROJECT / file, folder / f"test_{file}")
        command = [sys.executable, "-m", "pytest", "-p", "rmqtools.testing.plugin", "-W", "error", "-rA"]
        alone = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
        done = subprocess.run(
            [*command, *arguments], cwd=folder, env=os.environ | alone, capture_output=True, text=True
        )
        return done.stdout + done.stderr, done.returncode

    return run


@pytest.fixture(scope="module")
def cases(run_pytest: RunPytest) -> str:
    """What pytest prints of all cases."""
    output, _ = run_pytest("plugin_cases.py", "-o", "rocketmq=other")
    return output


def test_ten_tests_and_those_of_the_page_pass_on_the_fake_cluster(run_pytest: RunPytest) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)

    output, code = run_pytest("ten.py", more="\n".join(blocks))

    assert code == 0, output
    assert f"{10 + len(blocks)} passed" in output


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("test_named_cluster_wins", id="the cluster that a test names wins over the option"),
        pytest.param("test_fault_strikes", id="a fault proves that it struck"),
        pytest.param("test_client_and_admin_are_started", id="client and admin are started"),
        pytest.param(
            "TestOwnTopic::test_own_fixture", id="a project's fixture takes the place of the plugin's"
        ),
    ],
)
def test_a_case_passes(cases: str, case: str) -> None:
    assert f"PASSED test_plugin_cases.py::{case}" in cases, cases


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("test_both_clusters", "has both rocketmq and fake_rocketmq: name the one"),
        ("test_unknown_ini_option", "ini option rocketmq = 'other': want fake or real"),
    ],
)
def test_a_choice_that_cannot_be_made_is_told(cases: str, case: str, why: str) -> None:
    assert re.search(rf"ERROR test_plugin_cases.py::{case} - .*UsageError", cases), cases
    assert why in cases


def test_the_fixtures_are_listed_with_what_they_give(run_pytest: RunPytest) -> None:
    output, _ = run_pytest("ten.py", "--fixtures")

    listed = dict(
        re.findall(r"^(\w+)(?: \[\w+ scope\])? -- .*plugin\.py:\d+\n +(\S.+)$", output, re.MULTILINE)
    )
    assert listed.keys() >= {
        *("rocketmq", "fake_rocketmq", "rocketmq_client", "rocketmq_admin"),
        *("topic", "producer", "pinned_group", "drain"),
    }
