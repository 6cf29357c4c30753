"""Rounds to lines of the table, and to JSON."""

import json
import os
import platform
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tools.measure.bench.areas import Area
from tools.measure.bench.program import Round

BUSY = 0.6  # processors that others take: from there on the client's CPU per message is what counts
_HEAD = ("area", "ours", "theirs", "ratio", "CPU us", "theirs", "ratio", "broker us", "others", "bar", "met")
_FORM = "{:<50} {:>10} {:>10} {:>6} {:>7} {:>7} {:>6} {:>9} {:>6} {:>6} {:>4}"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the table: medians of its rounds."""

    area: Area
    ours: float
    theirs: float | None
    cpu: float
    their_cpu: float | None
    broker_cpu: float
    others: float
    rounds: Sequence[Sequence[Round]]

    @property
    def ratio(self) -> float | None:
        """Ours over theirs."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def cpu_ratio(self) -> float | None:
        """Our CPU per message over theirs."""
        return self.cpu / self.their_cpu if self.their_cpu else None

    @property
    def is_met(self) -> bool | None:
        """True if the bar is; None: there is none."""
        bar = self.area.bar
        if bar is None or self.ratio is None or self.cpu_ratio is None:
            return None
        if self.area.value is not None:
            return self.ratio <= bar
        if self.others > BUSY:
            return self.cpu_ratio <= (self.area.cpu_bar or 1 / bar)
        return self.ratio >= bar and self.cpu_ratio <= (self.area.cpu_bar or float("inf"))

    def cells(self) -> tuple[str, ...]:
        """As the table shows it."""
        met = {None: "", True: "yes", False: "NO"}[self.is_met]
        if self.is_met is not None and self.area.value is None and self.others > BUSY:
            met += "*"
        return (
            self.area.name,
            _number(self.ours),
            _number(self.theirs),
            _ratio(self.ratio),
            f"{self.cpu:.2f}",
            "" if self.their_cpu is None else f"{self.their_cpu:.2f}",
            _ratio(self.cpu_ratio),
            f"{self.broker_cpu:.2f}",
            f"{self.others:.2f}",
            _bar(self.area),
            met,
        )


def line_of(area: Area, rounds: Sequence[Sequence[Round]]) -> Line:
    """Medians; of several of theirs the best."""
    best = max(rounds[1:], key=lambda one: _median(one, area) * (-1 if area.value else 1), default=None)
    compared = [rounds[0]] if best is None else [rounds[0], best]
    return Line(
        area=area,
        ours=_median(rounds[0], area),
        theirs=None if best is None else _median(best, area),
        cpu=statistics.median(one.cpu_us for one in rounds[0]),
        their_cpu=None if best is None else statistics.median(one.cpu_us for one in best),
        broker_cpu=statistics.median(one.broker_cpu_us for one in rounds[0]),
        others=statistics.median(one.others for some in compared for one in some),
        rounds=rounds,
    )


def _median(rounds: Sequence[Round], area: Area) -> float:
    return statistics.median(one.more[area.value] if area.value else one.rate for one in rounds)


def print_table(lines: Iterable[Line], *, with_head: bool = True) -> None:
    """Messages a second (or milliseconds), CPU in microseconds a message, bars; * judged by CPU."""
    if with_head:
        print(_FORM.format(*_HEAD))
    for line in lines:
        print(_FORM.format(*line.cells()), flush=True)


def write_json(directory: Path, plan: Any, lines: Sequence[Line]) -> Path:
    """Everything measured, with machine and settings, into a file of its own; return it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"bench-{time.strftime('%Y%m%d-%H%M%S')}.json"
    document = {
        "machine": machine(),
        "plan": asdict(plan),
        "lines": [_line_document(line) for line in lines],
    }
    path.write_text(json.dumps(document, indent=1))
    print(f"all rounds: {path}")
    return path


def _line_document(line: Line) -> dict[str, Any]:
    sides = (line.area.ours, *line.area.theirs)
    rounds = [
        {"side": asdict(side), "rounds": [asdict(one) for one in some]}
        for side, some in zip(sides, line.rounds, strict=True)
    ]
    return {
        "area": line.area.name,
        "bar": line.area.bar,
        "ratio": line.ratio,
        "cpu_ratio": line.cpu_ratio,
        "others": line.others,
        "is_met": line.is_met,
        "sides": rounds,
    }


def machine() -> dict[str, Any]:
    """Processors, system and versions."""
    model = next(
        (line.partition(":")[2].strip() for line in _cpu_info() if line.startswith("model name")), "unknown"
    )
    return {
        "processors": os.cpu_count(),
        "model": model,
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("numpy", "pyarrow", "pyspark", "rmqtools")},
    }


def _cpu_info() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _bar(area: Area) -> str:
    if area.bar is None:
        return ""
    return f"{'<=' if area.value else '>='}{area.bar:g}"
