"""examples/notebook.ipynb, cell by cell."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PROGRAM_PATIENCE

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples/notebook.ipynb"
_CELL = """
{}
images.append({})
"""
_LOOK = """
drawn = [value._repr_png_() for value in images if hasattr(value, "_repr_png_")]
print("images", sum(data.startswith(b"\\x89PNG") for data in drawn))
(axis,) = figure.axes
drawn = {line.get_label(): list(line.get_ydata()) for line in axis.get_lines()}
print("drawn", sorted(drawn), "points", {len(values) for values in drawn.values()}, "last", sum(
    values[-1] for values in drawn.values()))
print("title", axis.get_title())
"""


def as_in_a_notebook(cell: str) -> str:
    """Keep the value of a cell's last expression, which a notebook shows: as a picture if it can be one."""
    last = ast.parse(cell).body[-1]
    if not isinstance(last, ast.Expr):
        return cell
    lines = cell.splitlines()
    return _CELL.format("\n".join(lines[: last.lineno - 1]), ast.unparse(last.value))


def test_the_notebook_runs_from_top_to_bottom(local_cluster, tmp_path):
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    *work, end = ["".join(cell["source"]) for cell in cells]
    program = tmp_path / "notebook.py"
    program.write_text("\n".join(["images = []", *map(as_in_a_notebook, work), _LOOK, end]))

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
    assert "images 1\n" in ended.stdout
    assert "title lag of the stream that reads NotebookOrders\n" in ended.stdout
    assert "drawn ['broker-a', 'broker-b'] points {9} last 0" in ended.stdout
    assert all(not cell["outputs"] for cell in cells)  # nothing of somebody's machine is kept
