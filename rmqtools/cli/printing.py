"""Printing of all commands: lines, JSON, and tables that never cut a cell.

A table is as wide as its cells. If the terminal is narrower, less important columns are left out, named
on standard error. A file or a pipe gets every column, without colours.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from textwrap import wrap
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rmqtools.cli.moments import moment_text
from rmqtools.clock import SYSTEM_CLOCK, as_time
from rmqtools.model.queue import MessageQueue, queue_name
from rmqtools.visible_text import visible, visible_json, visible_lines

GAP = "  "
_LAST_MS = 253_402_214_400_000  # a day before the end of the year 9999: a zone may be ahead of UTC


class Interrupted(BaseException):
    """SIGINT or SIGTERM as an exception, so that ``with`` blocks close their resources."""

    @property
    def exit_code(self) -> int:
        """128 and the number of the signal, as shells count."""
        return 128 + int(self.args[0])


class _Console(Console):
    """A console that leaves a closed pipe to the command."""

    def on_broken_pipe(self) -> None:
        """Raise it again: rich would end the process with code 1."""
        raise BrokenPipeError


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, how soon it leaves a narrow terminal (0: never), the colour of a value."""

    name: str
    leaves: int = 0
    style: Callable[[Any], str] = lambda _: ""


def warning(value: Any) -> str:
    """Return the colour of a value that should be zero or empty."""
    return "yellow" if value not in (None, "", 0, "0", "-") else ""


def finding(value: Any) -> str:
    """Return the colour of a text about a problem."""
    return "bold red" if value else ""


def print_table(columns: Sequence[Column | str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on standard output. Columns of numbers are right-aligned; None is shown as ``-``."""
    print_tables(columns, {"": rows})


def print_tables(columns: Sequence[Column | str], tables: Mapping[str, Sequence[Sequence[object]]]) -> None:
    """Print tables of equal columns, each below its title; name once the columns that are left out."""
    shown = [Column(column) if isinstance(column, str) else column for column in columns]
    width = terminal_width()
    console = _Console(highlight=False, soft_wrap=True)
    left_out: dict[str, None] = {}
    for title, rows in tables.items():
        if title:
            console.print(visible(title), markup=False)
        lines, names = table_lines(shown, rows, width)
        left_out |= dict.fromkeys(names)
        for line in lines:
            console.print(line, crop=False, overflow="ignore", no_wrap=True)
    if left_out:
        text = f"not shown at {width} columns: {', '.join(left_out)} (a pipe and --json have them)"
        for part in wrap(text, width or 80, break_on_hyphens=False, break_long_words=False):
            warn(part)


def row_cells(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of an object for JSON as a row; its queue is one cell, as options take it."""
    cells = dict(row)
    if "queue_id" in cells:
        cells["broker_name"] = queue_name(MessageQueue("", cells["broker_name"], cells.pop("queue_id")))
    return tuple(cells.values())


def terminal_width() -> int | None:
    """Return the columns of the terminal that standard output is; None: it is a pipe or a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int | None
) -> tuple[list[Text], list[str]]:
    """Return the lines of a table, and the names of the columns that ``width`` has no room for."""
    texts = [[cell_text(cell) for cell in row] for row in rows]
    widths = [
        max(cell_len(cell) for cell in (column.name, *(row[index] for row in texts)))
        for index, column in enumerate(columns)
    ]
    kept = fitting(columns, widths, width)
    numeric = [_is_numeric([row[index] for row in rows]) for index in range(len(columns))]
    lines = [_line([columns[i].name.upper() for i in kept], kept, widths, numeric, lambda _: "bold")]
    for row, cells in zip(rows, texts, strict=True):
        styles = {i: columns[i].style(row[i]) for i in kept}
        lines.append(_line([cells[i] for i in kept], kept, widths, numeric, styles.__getitem__))
    return lines, [column.name for index, column in enumerate(columns) if index not in kept]


def cell_text(value: object) -> str:
    """Return a value in a table: ``-`` for None, rates with one digit, text made visible."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list | tuple):
        return visible(", ".join(map(str, value))) or "-"
    return visible(str(value))


def say(text: str) -> None:
    """Print a text on standard output, made visible."""
    _Console(highlight=False, soft_wrap=True).print(visible_lines(text), markup=False)


def warn(text: str) -> None:
    """Print a text on standard error, made visible."""
    _Console(stderr=True, highlight=False, soft_wrap=True).print(visible_lines(text), markup=False)


def print_json(value: Any) -> None:
    """Print dataclasses, mappings and texts as JSON."""
    sys.stdout.write(visible_json(json.dumps(plain(value), indent=1, ensure_ascii=False)) + "\n")


def plain(value: Any) -> Any:
    """Turn a value into one that ``json`` can write; keys of mappings become text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, Exception):
        return {"error": str(value)}
    if isinstance(value, Enum):
        return value.value
    return value.isoformat() if isinstance(value, datetime) else value


def now() -> datetime:
    """Return the time of this machine in UTC."""
    return as_time(SYSTEM_CLOCK.now_ms())


def time_text(timestamp_ms: int | None) -> str | None:
    """Return milliseconds as all commands show a time; None for "never" (0). What is no time is marked so."""
    if not timestamp_ms:
        return None
    return no_time_text(timestamp_ms) or moment_text(as_time(timestamp_ms))


def no_time_text(timestamp_ms: int) -> str | None:
    """Return the text of a number that is no time: clients may have written any; None: it is one."""
    return None if 0 < timestamp_ms <= _LAST_MS else f"{timestamp_ms} ms (no time)"


@contextmanager
def ends_quietly() -> Iterator[None]:
    """Exit silently on Ctrl-C, SIGTERM or a closed pipe."""
    try:
        yield
        sys.stdout.flush()
    except Interrupted as signal:
        raise typer.Exit(signal.exit_code) from signal
    except BrokenPipeError as error:
        drop_output()
        raise typer.Exit from error


def drop_output() -> None:
    """Send standard output nowhere from now on: its reader is gone, and the flush at exit would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fitting(columns: Sequence[Column], widths: Sequence[int], width: int | None) -> list[int]:
    """Return the indexes of the columns that ``width`` has room for, a gap of two between them."""
    kept = list(range(len(columns)))
    while width is not None and sum(widths[i] for i in kept) + len(GAP) * (len(kept) - 1) > width:
        leaving = max(kept, key=lambda i: (columns[i].leaves, i))
        if not columns[leaving].leaves:
            return kept
        kept.remove(leaving)
    return kept


def _is_numeric(cells: Sequence[object]) -> bool:
    given = [cell for cell in cells if cell is not None]
    return bool(given) and all(isinstance(c, int | float) and not isinstance(c, bool) for c in given)


def _line(
    cells: Sequence[str],
    kept: Sequence[int],
    widths: Sequence[int],
    numeric: Sequence[bool],
    style: Callable[[int], str],
) -> Text:
    line = Text(end="")
    for position, (cell, index) in enumerate(zip(cells, kept, strict=True)):
        space = " " * (widths[index] - cell_len(cell))
        last = position == len(kept) - 1
        line.append(GAP if position else "")
        line.append(space if numeric[index] else "")
        line.append(cell, style(index))
        line.append("" if numeric[index] or last else space)
    line.rstrip()
    return line
