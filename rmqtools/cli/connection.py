"""What the commands have in common: how they reach the cluster, how they print."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rmqtools.clock import SYSTEM_CLOCK, as_time
from rmqtools.config import ClientConfig
from rmqtools.errors import ConfigError

C = TypeVar("C", bound=ClientConfig)

NameServer = Annotated[
    str,
    typer.Option(
        "--name-server",
        "-n",
        envvar="NAMESRV_ADDR",
        metavar="HOST:PORT",
        show_default=False,
        help="The name server; several separated by ';'.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of the client, e.g. namespace=staging or request_timeout=10; may be given several "
        "times. Environment variables do the same: RMQTOOLS_ACCESS_KEY, RMQTOOLS_SECRET_KEY, ...",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs, not tables.")]

_WIDE = 240  # columns of a table that nobody reads on a terminal: nothing is folded
_ENVIRONMENT_PREFIX = "RMQTOOLS_"


def client_config(name_server: str, settings: Sequence[str] | None, kind: type[C]) -> C:
    """The settings of the command line, over those of the environment.

    Raises:
        ConfigError: a setting that nobody knows or that is not of the form NAME=VALUE; no name server.
    """
    names = {f.name: _ENVIRONMENT_PREFIX + f.name.upper() for f in fields(kind)}
    values = {name: os.environ[variable] for name, variable in names.items() if variable in os.environ}
    values |= dict(_pair(text) for text in settings or ())
    if name_server:
        values["name_server"] = name_server
    if not values.get("name_server"):
        raise ConfigError("no name server: give --name-server HOST:PORT, or set NAMESRV_ADDR")
    return kind.from_mapping(values)


def pairs(texts: Sequence[str] | None) -> dict[str, str]:
    """``NAME=VALUE`` options as a mapping.

    Raises:
        ConfigError: one without ``=``.
    """
    return dict(_pair(text) for text in texts or ())


def out() -> Console:
    """Standard output: as wide as the terminal, wide enough for everything in a file or a pipe."""
    width = None if sys.stdout.isatty() else _WIDE
    return Console(highlight=False, width=width)


def say(text: str) -> None:
    """Print a line as it is, on standard output."""
    Console(highlight=False, soft_wrap=True).print(text, markup=False)


def warn(text: str) -> None:
    """Print a line as it is, on standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)


def print_json(value: Any) -> None:
    """Print a value of dataclasses, mappings and texts as JSON."""
    sys.stdout.write(json.dumps(_plain(value), indent=1, ensure_ascii=False) + "\n")


def add_row(table: Table, *cells: object) -> None:
    """Add a row as it is: ``[`` in an IPv6 client id is no markup; None is an empty cell."""
    table.add_row(*("" if cell is None else escape(str(cell)) for cell in cells))


def now() -> datetime:
    """The time of this machine, in UTC."""
    return as_time(SYSTEM_CLOCK.now_ms())


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name):
        raise ConfigError(f"{text!r}: want NAME=VALUE, e.g. namespace=staging")
    return name, value


def _plain(value: Any) -> Any:
    """What ``json`` can write; keys of mappings become text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value))
    if isinstance(value, Exception):
        return {"error": str(value)}
    return value.isoformat() if isinstance(value, datetime) else value
