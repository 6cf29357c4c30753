"""The pictures of the speed page: what they take from the JSON of runs."""

import json
import re
from html import unescape

import numpy as np
import pytest

from tools.measure.bench.page import PAGE, ROWS
from tools.measure.bench.plots import ASSETS, PICTURES, Bars, draw, main
from tools.measure.bench.spark_kafka.__main__ import BARS


def line(area, *rates):
    return {
        "area": area,
        "sides": [{"rounds": [{"count": 2 * rate, "seconds": 2.0} for rate in side]} for side in rates],
    }


def run(folder, *lines):
    file = folder / "run.json"
    file.write_text(json.dumps({"lines": lines}))
    return main([str(file), "--into", str(folder)])


def words(path):
    return [unescape(text) for text in re.findall(r">([^<>]+)</text>", path.read_text())]


def test_a_bar_is_the_ratio_of_the_median_and_of_several_others_the_best(tmp_path):
    lines = [
        line("async send, 256 in flight, 100 B", [1000, 3000, 9000], [1, 2, 3], [2000, 1500, 10]),
        line("async send, 256 in flight, 1024 B", [330], [500]),
    ]

    assert run(tmp_path, *lines) == 0

    shown = words(tmp_path / "speed-java.svg")
    assert "async send, 256 in flight" in shown
    assert {"2.00", "0.66"} <= {text.replace("\xa0", " ").strip() for text in shown}


def test_a_longer_latency_is_a_ratio_below_one(tmp_path):
    sides = [{"rounds": [{"more": {"p50_ms": ms, "p99_ms": 2 * ms}}]} for ms in (4.0, 3.0)]
    lines = [{"area": f"latency send -> listener, {which}", "sides": sides} for which in ("p50", "p99")]

    assert run(tmp_path, *lines) == 0

    assert [text.strip() for text in words(tmp_path / "speed-java.svg")].count("0.75") == 2


def test_the_scale_is_linear_from_zero_and_ends_beyond_one():
    slow = draw([Bars("slow", {"small": 0.2, "large": 0.4})], PICTURES[0]).axes[0]
    fast = draw([Bars("fast", {"large": 79.4})], PICTURES[1]).axes[0]

    assert [axes.get_xscale() for axes in (slow, fast)] == ["linear", "linear"]
    assert [axes.get_xlim()[0] for axes in (slow, fast)] == [0, 0]
    assert slow.get_xlim()[1] > 1
    marks = [np.asarray(axes.lines[0].get_path().vertices).tolist() for axes in (slow, fast)]
    assert marks == [[[1, 0], [1, 1]]] * 2


def test_a_run_without_lines_of_a_picture_draws_none_of_it(tmp_path, capsys):
    assert run(tmp_path, line("read", [4], [2])) == 0
    assert [path.name for path in tmp_path.glob("*.svg")] == ["speed-spark.svg"]
    assert "spark.read" in words(tmp_path / "speed-spark.svg")

    assert run(tmp_path, line("another", [4], [2])) == 1
    assert "no line of a picture" in capsys.readouterr().err


def test_one_run_gives_one_file(tmp_path):
    pictures = []
    for _ in range(2):
        run(tmp_path, line("write", [1], [2]))
        pictures.append((tmp_path / "speed-spark.svg").read_bytes())

    assert pictures[0] == pictures[1]


def test_every_line_of_a_picture_is_one_of_a_bench():
    measured = {area for areas in ROWS.values() for area in areas} | BARS.keys()

    assert {area for picture in PICTURES for areas in picture.rows.values() for area in areas} <= measured


@pytest.mark.parametrize("picture", PICTURES[:2], ids=lambda picture: picture.name)
def test_a_picture_has_every_ratio_of_the_tables_of_its_page(picture):
    text = (ASSETS / picture.name).read_text()
    drawn = [float(ratio) for ratio in re.findall(r">\s*(\d+\.\d\d)</text>", text.replace("\xa0", " "))]
    labels = {tuple(areas): label for label, areas in ROWS.items()}
    wanted = [ratio for areas in picture.rows.values() for ratio in ratios_of(labels[tuple(areas)])]

    assert picture.rows.keys() <= set(words(ASSETS / picture.name))
    assert drawn[-len(wanted) :] == pytest.approx(wanted, rel=0.02)  # behind the numbers of the axis


def ratios_of(label):
    """The ratios of a row of the page; of a latency the inverse."""
    table = PAGE.read_text()
    if label.startswith("large: "):
        table = table.partition("Bodies of 64 KB")[2]
    else:
        table = re.sub(r"Bodies of 64 KB.*?\n## ", "", table, flags=re.DOTALL)
    (cell,) = re.findall(
        rf"^\| {re.escape(label.removeprefix('large: '))} \|[^|]*\|[^|]*\| ([^|]*) \|[^|]*\|",
        table,
        re.MULTILINE,
    )[:1]
    ratios = [float(ratio) for ratio in cell.split(", ")]
    return [1 / ratio for ratio in ratios] if label.startswith("latency") else ratios
