"""``python -m tools.measure.bench.plots FILE...``: the pictures of docs/performance.md from the JSON of runs.

Takes what ``tools.measure.bench`` and ``tools.measure.bench.spark_kafka --json`` have written, and draws
those pictures of which it has lines: rates beside the Java client, beside other Python clients, and of Spark
beside Kafka. Each bar is the median of a side's rounds. Where rates differ much, the scale is logarithmic.
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

from tools.measure.bench.medians import Run

ASSETS: Final = Path(__file__).resolve().parents[3] / "docs" / "assets"
_OURS, _THEIRS = "#1f77b4", "#bbbbbb"
_BAR = 0.38  # of a line's height
_MANY_TIMES = 20  # from there on a scale without logarithms hides the small ones


@dataclass(frozen=True)
class Picture:
    """One picture: its file, the other side, and its labels by the areas of a run that it shows."""

    name: str
    peer: str
    labels: Mapping[str, str]
    unit: str = "messages/s"


PICTURES: Final = (
    Picture(
        "speed-java.svg",
        "Java client",
        {
            "sync send, blocking face, 100 B": "send, one at a time",
            "async send, 256 in flight, 1024 B": "send_async, 256 in flight",
            "batch 128, Messages, blocking face, 1024 B": "send_batch of 128",
            "all at once, columns, over batch 128, 1024 B": "send_batches, from columns",
            "push, no-op listener, blocking, 1024 B": "push",
            "popping push, no-op listener, blocking, 1024 B": "push by popping",
            "poll, blocking, 1024 B": "poll",
            "read -> Arrow, 1024 B, 1 process": "range read into columns",
        },
    ),
    Picture(
        "speed-python.svg",
        "other client",
        {
            "one at a time, blocking, over native": "send, one at a time: native",
            "one at a time, blocking, over grpc": "send, one at a time: gRPC",
            "256 in flight, over native, 16 threads": "sends in flight: native",
            "256 in flight, over grpc, 256": "sends in flight: gRPC",
            "push with its start, over native": "push: native",
            "push with its start, over grpc": "push: gRPC",
        },
    ),
    Picture("speed-spark.svg", "Kafka source", {"read": "spark.read", "write": "df.write"}, "rows/s"),
)


@dataclass(frozen=True)
class Pair:
    """Medians of one line: messages or rows per second."""

    label: str
    ours: float
    theirs: float


def read_pairs(document: Mapping[str, Any], picture: Picture) -> list[Pair]:
    """Return the lines of a picture that a run has, in the picture's order."""
    run = Run(document)
    return [Pair(label, *run.pair(area)) for area, label in picture.labels.items() if area in run]


def draw(pairs: Sequence[Pair], peer: str, unit: str) -> Figure:
    """Draw one line for each pair, ours above theirs, with the numbers and the ratio."""
    figure = Figure(figsize=(8, 0.6 * len(pairs) + 1.2), layout="constrained")
    axes = figure.subplots()
    for place, pair in enumerate(pairs):
        axes.barh(place - _BAR / 2, pair.ours, _BAR, color=_OURS, label="rmqtools" if not place else None)
        axes.barh(place + _BAR / 2, pair.theirs, _BAR, color=_THEIRS, label=None if place else peer)
        axes.text(
            pair.ours, place - _BAR / 2, f" {pair.ours:,.0f}  ({pair.ours / pair.theirs:.2g} x)", va="center"
        )
        axes.text(pair.theirs, place + _BAR / 2, f" {pair.theirs:,.0f}", va="center")
    axes.set_yticks(range(len(pairs)), [pair.label for pair in pairs])
    rates = [rate for pair in pairs for rate in (pair.ours, pair.theirs)]
    if max(rates) / min(rates) > _MANY_TIMES:
        axes.set_xscale("log")
        axes.set_xlim(min(rates) / 10, max(rates) * 10)  # room for the numbers
    else:
        axes.set_xlim(0, max(rates) * 1.3)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel(unit)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    return figure


def write_pictures(documents: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[Path]:
    """Write the pictures of which a run has lines, and yield their paths; one run gives one file."""
    for picture in PICTURES:
        for document in documents:
            if pairs := read_pairs(document, picture):
                figure = draw(pairs, picture.peer, picture.unit)
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
