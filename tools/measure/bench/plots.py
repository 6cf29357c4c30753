"""``python -m tools.measure.bench.plots FILE...``: the pictures of docs/performance.md from the JSON of runs.

Takes what ``tools.measure.bench`` and ``tools.measure.bench.spark_kafka --json`` have written, and draws
those pictures of which it has lines: compared with the Java client, with other Python clients, and Spark
compared with its Kafka source. A bar is the ratio of two medians, on a linear scale from 0 on which 1.0,
equal speed, is marked. The pictures of Java and of other clients have every row of the page's tables.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tools.measure.bench.medians import Run
from tools.measure.bench.page import OTHER_CLIENTS, ROWS

ASSETS: Final = Path(__file__).resolve().parents[3] / "docs" / "assets"
_FASTER, _SLOWER = ("#8fbbd9", "#1f77b4"), ("#f2b58a", "#d95f02")  # of small bodies, of large ones
_SMALL: Final = (", 100 B", ", 64 KB", ", p50")
_ROW = 0.34  # inches
_OVER_THE_LINE: Final = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
_LATENCY = "latency send -> listener, ms: p50, p99"
_NOT_JAVA: Final = {*OTHER_CLIENTS, "the same, over ours without `linger`"}
_NAMES: Final = {
    "the same, on uvloop": "async send, 4,096 in flight, linger, uvloop",
    "the same, blocking": "message objects, eager properties, blocking",
    _LATENCY: "latency send -> listener: p50, p99 (inverse)",
}


@dataclass(frozen=True)
class Picture:
    """One picture: its file, the other side, and the areas of a run that it shows, by its labels."""

    name: str
    peer: str
    rows: Mapping[str, Sequence[str]]
    sizes: Sequence[str] = ()  # of small and of large bodies, if it has both


def _label(row: str) -> str:
    return _NAMES.get(row, row).replace("`", "").replace("large: ", "64 KB, 1 MB: ")


PICTURES: Final = (
    Picture(
        "speed-java.svg",
        "the Java client",
        {_label(row): areas for row, areas in ROWS.items() if row not in _NOT_JAVA},
        ("100 B or 64 KB", "1 KB or 1 MB"),
    ),
    Picture("speed-python.svg", "the other client", {row: ROWS[row] for row in OTHER_CLIENTS}),
    Picture(
        "speed-spark.svg",
        "Spark's Kafka source",
        {"spark.read": ["read"], "df.write": ["write"], "df.write, inner batches": ["write, BatchCQ"]},
    ),
)


@dataclass(frozen=True)
class Bars:
    """The ratios of one row by their areas: above 1, ours is the faster side."""

    label: str
    ratios: Mapping[str, float]


def read_bars(document: Mapping[str, Any], picture: Picture) -> list[Bars]:
    """Return the rows of a picture that a run has, in the picture's order."""
    run = Run(document)
    return [
        Bars(label, {area: _ratio(run, area) for area in areas})
        for label, areas in picture.rows.items()
        if all(area in run for area in areas)
    ]


def _ratio(run: Run, area: str) -> float:
    if area.startswith("latency"):
        ours, theirs = run.pair(area, f"{area.rpartition(' ')[2]}_ms")
        return theirs / ours
    ours, theirs = run.pair(area)
    return ours / theirs


def draw(rows: Sequence[Bars], picture: Picture) -> Figure:
    """Draw one bar for each ratio, and a line at 1.0."""
    figure = Figure(figsize=(8, _ROW * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows):
        height = 0.8 / len(row.ratios)
        for number, (area, ratio) in enumerate(row.ratios.items()):
            middle = place - 0.4 + height * (number + 0.5)
            colors = _FASTER if round(ratio, 2) >= 1 else _SLOWER
            is_small = any(f"{size}," in f"{area}," for size in _SMALL)
            axes.barh(middle, ratio, height, color=colors[0 if is_small else 1])
            axes.text(ratio, middle, f" {ratio:.2f}", va="center", fontsize=7, bbox=_OVER_THE_LINE)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
    axes.set_xlim(0, 1.1 * max(1.0, *(ratio for row in rows for ratio in row.ratios.values())))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"rate of rmqtools / rate of {picture.peer}; the line at 1.0: equal")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(handles=_legend(picture), loc="outside upper center", ncols=2, frameon=False)
    return figure


def _legend(picture: Picture) -> list[Patch]:
    words = (("rmqtools is faster", _FASTER), ("rmqtools is slower", _SLOWER))
    if not picture.sizes:
        return [Patch(color=colors[1], label=word) for word, colors in words]
    return [
        Patch(color=color, label=f"{word}, {size}")
        for word, colors in words
        for color, size in zip(colors, picture.sizes, strict=True)
    ]


def write_pictures(documents: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[Path]:
    """Write the pictures of which a run has lines, and yield their paths; one run gives one file."""
    for picture in PICTURES:
        for document in documents:
            if rows := read_bars(document, picture):
                figure = draw(rows, picture)
                with rc_context({"svg.hashsalt": picture.name, "svg.fonttype": "none"}):
                    figure.savefig(folder / picture.name, metadata={"Date": None})
                yield folder / picture.name


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw what the files have; return 1 if that is nothing."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.bench.plots", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="JSON of runs")
    parser.add_argument("--into", type=Path, default=ASSETS, help="a folder (default: docs/assets)")
    asked = parser.parse_args(arguments)
    written = [*write_pictures([json.loads(file.read_text()) for file in asked.files], asked.into)]
    for path in written:
        print(path)
    if not written:
        print(f"no line of a picture in {', '.join(map(str, asked.files))}", file=sys.stderr)
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main())
