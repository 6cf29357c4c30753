"""``python -m tools.measure.bench.page FILE``: the tables of docs/performance.md, from the JSON of a run.

Each row that ``ROWS`` names gets the run's medians, for each of its areas; all other lines stay as they are.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.measure.bench.medians import Run

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "performance.md"
SIZES: Final = (", 100 B", ", 1024 B")
_LARGE: Final = (", 64 KB", ", 1 MB")
_WORDS: Final = 4  # separators in a row of the table of limits
_LINGER: Final = "async send, 4,096 in flight, linger"
OTHER_CLIENTS: Final = (
    "one at a time, blocking, over native",
    "256 in flight, over native, 16 threads",
    "push with its start, over native",
    "one at a time, blocking, over grpc",
    "256 in flight, over grpc, 256",
    "push with its start, over grpc",
    "push, over receive + ack of grpc",
)
_MEMORY: Final = {
    "one at a time, blocking, over native": "MB after sends one at a time, over native",
    "push with its start, over native": "MB after push, over native",
    "one at a time, blocking, over grpc": "MB after sends one at a time, over grpc",
    "push with its start, over grpc": "MB after push, over grpc",
}


def _each(label: str, area: str | None = None, endings: Sequence[str] = SIZES) -> tuple[str, list[str]]:
    return label, [f"{label if area is None else area}{ending}" for ending in endings]


ROWS: Final[Mapping[str, Sequence[str]]] = dict(
    [
        ("sync send, blocking", ["sync send, blocking face, 100 B"]),
        ("sync send, blocking, 8 threads", ["sync send, blocking face, 8 threads, 100 B"]),
        ("sync send, aio", ["sync send, aio, 100 B"]),
        ("sync send, aio on uvloop", ["sync send, aio on uvloop, 100 B"]),
        _each("async send, 256 in flight"),
        _each("async send, 4,096 in flight, `linger`", _LINGER),
        ("the same, on uvloop", [f"{_LINGER}{size}, uvloop" for size in SIZES]),
        ("the same, over ours without `linger`", [f"{_LINGER}{size}, over no linger" for size in SIZES]),
        _each("batch 128, Messages, blocking", "batch 128, Messages, blocking face"),
        _each("batch 128, Messages, aio"),
        _each("send_many, Messages, over batch 128"),
        _each("message objects, eager properties, aio"),
        _each("the same, blocking", "message objects, eager properties, blocking"),
        _each("message objects, all fields, aio"),
        _each("message objects, all fields, blocking"),
        _each("push, blocking", "push, no-op listener, blocking"),
        _each("push, blocking, 32 a call", "push, no-op listener, 32 a call, blocking"),
        _each("push, aio", "push, no-op listener, aio"),
        _each("orderly push, blocking", "orderly push, no-op listener, blocking"),
        _each("popping push, blocking", "popping push, no-op listener, blocking"),
        _each("poll, blocking"),
        _each("for message in consumer, blocking"),
        _each("large: read -> Arrow", "read -> Arrow", _LARGE),
        _each("large: message objects, aio", "message objects, aio", _LARGE),
        _each("large: message objects, blocking", "message objects, blocking", _LARGE),
        _each("large: sync send, blocking", "sync send, blocking", _LARGE),
        _each("large: sync send, aio", "sync send, aio", _LARGE),
        *((name, [name]) for name in OTHER_CLIENTS),
        ("read -> Arrow", [f"read -> Arrow{size}, 1 process" for size in SIZES]),
        ("read -> Arrow, 1 KB, 2 processes", ["read -> Arrow, 1024 B, 2 processes"]),
        _each("message objects, lazy, aio"),
        _each("8 messages a pull"),
        _each("batch 32, columns"),
        _each("batch 128, columns"),
        _each("all at once, columns, over batch 128"),
        ("Spark read, 1 KB", ["Spark read -> noop, 1024 B"]),
        ("Spark write, 1 KB, over batch 32", ["Spark write, 1024 B"]),
        (
            "latency send -> listener, ms: p50, p99",
            ["latency send -> listener, p50", "latency send -> listener, p99"],
        ),
    ]
)
"""The areas of a run whose values stand in a row, by the row's first cell. In the table of large bodies the
labels lack ``large:``."""


def _cells(run: Run, areas: Sequence[str]) -> list[str]:
    """Return the cells of a row, without its label."""
    values = [f"{area.rpartition(' ')[2]}_ms" if area.startswith("latency") else None for area in areas]
    pairs = [run.pair(area, value) for area, value in zip(areas, values, strict=True)]
    form = "{:.2f}" if values[0] else "{:,.0f}"
    ours, theirs = (", ".join(form.format(pair[side]) for pair in pairs) for side in (0, 1))
    ratios = ", ".join(f"{mine / other:.2f}" for mine, other in pairs)
    cpus = "" if values[0] else ", ".join(" / ".join(map(_short, run.cpu(area))) for area in areas)
    return [ours, theirs, ratios, cpus]


def _memory(run: Run, label: str) -> list[str]:
    """Return the last cell of a row of the table of other clients: megabytes, if they were measured."""
    if label not in OTHER_CLIENTS:
        return []
    area = _MEMORY.get(label)
    return ["" if area is None else " / ".join(f"{mb:.0f}" for mb in run.pair(area, "resident_mb"))]


def _short(microseconds: float) -> str:
    return f"{microseconds:.0f}" if microseconds >= 9.95 else f"{microseconds:.1f}"


def with_figures(page: str, run: Run) -> str:
    """Return the page with the run's figures."""
    lines: list[str] = []
    is_large = False
    for line in page.splitlines():
        if line.startswith("Bodies of 64 KB"):
            is_large = True
        elif line.startswith("## "):
            is_large = False
        label = line.split("|")[1].strip() if line.startswith("|") else ""
        is_figures = line.count("|") > _WORDS  # not the table of limits, which has the same labels
        areas = ROWS.get(f"large: {label}" if is_large else label) if is_figures else None
        if areas is not None:
            cells = [label, *_cells(run, areas), *_memory(run, label)]
            line = f"| {' | '.join(cells)} |".replace("|  |", "| |")
        lines.append(line)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.bench.page", description=__doc__)
    parser.add_argument("file", type=Path, help="JSON of a whole run")
    run = Run(json.loads(parser.parse_args().file.read_text()))
    PAGE.write_text(with_figures(PAGE.read_text(), run))


if __name__ == "__main__":
    main()
