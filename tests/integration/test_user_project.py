"""A user's project outside the checkout: the wheel with the extra ``testing``, ten tests, both clusters."""

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.java_peer import CHECKOUT
from tools.release import pinned_versions

pytestmark = pytest.mark.slow


def run(*command: object, folder: Path, **variables: str) -> str:
    """Run a program; what it has printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=kept | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def run_tests(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """``run_tests(*arguments)``: what pytest prints in the project, in its own virtual environment."""
    folder = tmp_path_factory.mktemp("project")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder / "dist", "-t", "wheel", folder=CHECKOUT)
    (wheel,) = (folder / "dist").glob("*.whl")
    (folder / "constraints.txt").write_text(pinned_versions((CHECKOUT / "requirements.lock").read_text()))
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*install, "-c", folder / "constraints.txt", f"{wheel}[testing]", folder=folder)
    shutil.copy(CHECKOUT / "tests/support/user_project/ten.py", folder / "test_ten.py")
    run(python, "-m", "pytest", "-q", folder=folder)  # compiles what is imported

    return lambda *arguments: run(python, "-m", "pytest", "-q", "-W", "error", *arguments, folder=folder)


def test_ten_tests_pass_on_the_fake_cluster_in_less_than_two_seconds(run_tests) -> None:
    outputs = [run_tests() for _ in range(3)]

    seconds = [float(found[1]) for one in outputs if (found := re.search(r"10 passed in ([\d.]+)s", one))]
    assert min(seconds) < 2, outputs


@pytest.mark.broker
def test_the_same_ten_tests_pass_on_a_real_cluster(run_tests) -> None:
    assert "10 passed" in run_tests("--rocketmq=real")
