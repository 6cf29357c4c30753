"""The packages as they were before this release, for members and files of both versions side by side."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OLD = "965c637"
"""The last commit before the work on release 0.3.0."""


def extract(folder: Path) -> Path:
    """Write the packages of that commit into a folder, which goes on PYTHONPATH; they run in Python."""
    archive = ["git", "archive", OLD, "rmqtools", "spark_connector"]
    done = subprocess.run(archive, cwd=ROOT, capture_output=True)
    if done.returncode:
        pytest.fail(f"needs the history of this checkout (git fetch --unshallow): {done.stderr.decode()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder
