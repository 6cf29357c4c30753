"""The pictures of the speed page: what they take from the JSON of runs."""

import json
import re

from tools.measure.bench.areas import all_areas
from tools.measure.bench.peers.lines import peer_areas
from tools.measure.bench.plots import PICTURES, main
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
    return re.findall(r">([^<>]+)</text>", path.read_text())


def test_a_bar_is_the_median_and_of_several_others_the_best(tmp_path):
    area = "async send, 256 in flight, 1024 B"

    assert run(tmp_path, line(area, [1000, 3000, 9000], [1, 2, 3], [2000, 1500, 10])) == 0

    shown = words(tmp_path / "speed-java.svg")
    assert "send_async, 256 in flight" in shown
    assert {" 3,000  (2 x)", " 1,500"} <= {text.replace("\xa0", " ") for text in shown}


def test_a_run_without_lines_of_a_picture_draws_none_of_it(tmp_path, capsys):
    assert run(tmp_path, line("read", [4], [2])) == 0
    assert [path.name for path in tmp_path.glob("*.svg")] == ["speed-spark.svg"]
    assert "rows/s" in words(tmp_path / "speed-spark.svg")

    assert run(tmp_path, line("another", [4], [2])) == 1
    assert "no line of a picture" in capsys.readouterr().err


def test_one_run_gives_one_file(tmp_path):
    pictures = []
    for _ in range(2):
        run(tmp_path, line("write", [1], [2]))
        pictures.append((tmp_path / "speed-spark.svg").read_bytes())

    assert pictures[0] == pictures[1]


def test_every_line_of_a_picture_is_one_of_a_bench():
    measured = {area.name for area in (*all_areas(1000), *peer_areas())} | BARS.keys()

    assert {area for picture in PICTURES for area in picture.labels} <= measured
