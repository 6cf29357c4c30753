"""The recipe of the staging kit passes as users would run it, on the cluster in the test's own process."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.process
def test_the_recipe_passes():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/staging_pinned"]

    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)

    assert (ended.returncode, "1 passed" in ended.stdout) == (0, True), ended.stdout
