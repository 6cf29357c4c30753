"""examples/notebook.ipynb, cell by cell."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PROGRAM_PATIENCE

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples/notebook.ipynb"
_LOOK = """
(axis,) = figure.axes
drawn = {line.get_label(): list(line.get_ydata()) for line in axis.get_lines()}
print("drawn", sorted(drawn), "points", {len(values) for values in drawn.values()}, "last", sum(
    values[-1] for values in drawn.values()))
"""


def test_the_notebook_runs_from_top_to_bottom(local_cluster, tmp_path):
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    *work, end = ["".join(cell["source"]) for cell in cells]
    program = tmp_path / "notebook.py"
    program.write_text("\n".join([*work, _LOOK, end]))

    ended = subprocess.run(
        [sys.executable, program],
        env={**os.environ, "NAMESRV_ADDR": local_cluster.name_server, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=PROGRAM_PATIENCE,
    )

    assert ended.returncode == 0, ended.stderr
    assert "|north|  6000|" in ended.stdout
    assert "9000 rows in files" in ended.stdout
    assert "drawn ['broker-a', 'broker-b'] points {9} last 0" in ended.stdout
    assert all(not cell["outputs"] for cell in cells)  # nothing of somebody's machine is kept
