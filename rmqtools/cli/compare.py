"""``rmqtools export`` and ``rmqtools diff``: a cluster's settings as YAML, and those of two compared."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rmqtools import Admin, ClientConfig
from rmqtools.cli.connection import Json, NameServer, Settings, client_config, partial_admin
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.printing import Column, print_json, print_table, say
from rmqtools.cli.settings_file import check_settings, differences, fetch_settings
from rmqtools.errors import ConfigError
from rmqtools.number_of import number_of
from rmqtools.safe_file import replace_text
from rmqtools.visible_text import visible_lines

Side = Annotated[
    str, typer.Argument(metavar="SIDE", show_default=False, help="HOST:PORT of a name server, or a file.")
]


def export(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            dir_okay=False,
            help="The file to write; default, and '-': standard output.",
        ),
    ] = None,
    name_server: NameServer = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    settings: Settings = None,
) -> None:
    """Write all topics, groups and masters with their settings as YAML: queues, permissions, attributes.

    `rmqtools diff` compares such a file with a cluster. If brokers do not answer, it has their names under
    `incomplete`, and diff refuses it. Settings of brokers that name one machine (addresses, paths) or may
    hold a secret are left out. Needs the extra export.

        rmqtools export -o staging.yaml
    """
    yaml = _yaml()
    output = None if str(output) == "-" else output
    if output is not None and output.exists() and not overwrite:
        raise ConfigError(f"{output} exists: give another file, or --overwrite")
    with partial_admin(client_config(name_server, settings, ClientConfig)) as admin:
        found = fetch_settings(admin)
        lacks = {"incomplete": sorted(admin.missing_brokers)} if admin.missing_brokers else {}
        text = yaml.safe_dump(lacks | found, sort_keys=False, allow_unicode=True)
        if output is None:
            sys.stdout.write(visible_lines(text) if sys.stdout.isatty() else text)
            return
        replace_text(output, text)
        say(f"{_sizes(found, ' and ')} written to {output}")


def diff(
    left: Side,
    right: Annotated[str | None, typer.Argument(metavar="[SIDE]", help="Default: --name-server.")] = None,
    name_server: NameServer = "",
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Compare topics, groups and brokers of two clusters, or a file of rmqtools export and a cluster.

    Exit code 0: equal; 1: they differ. A side that is no file is a name server.
    Files need the extra export. Nothing is changed.

        rmqtools diff staging.yaml 10.0.0.5:9876
    """
    sides = [_read(side, name_server, settings) for side in (left, right)]
    found = differences(*sides)
    if as_json:
        print_json(found)
    elif not found:
        say(f"equal: {_sizes(sides[0], ', ')}")
    else:
        say(f"left: {left}, right: {right or 'the cluster'}")
        columns = [Column("kind", 1), *map(Column, ("name", "setting", "left", "right"))]
        rows = [(one.kind, one.name, one.setting or "-", one.left, one.right) for one in found]
        print_table(columns, rows)
    if found:
        raise typer.Exit(ExitCode.NO)


def _sizes(settings: dict[str, dict[str, Any]], joint: str) -> str:
    return joint.join(number_of(len(settings[f"{noun}s"]), noun) for noun in ("topic", "group"))


def _read(side: str | None, name_server: str, settings: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Return the settings of a file or a cluster."""
    if side is not None and (Path(side).exists() or side.endswith((".yaml", ".yml"))):
        return _read_file(Path(side))
    with Admin(client_config(side or name_server, settings, ClientConfig)) as admin:
        return fetch_settings(admin)


def _read_file(path: Path) -> dict[str, dict[str, Any]]:
    yaml = _yaml()
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return check_settings(given, str(path))


def _yaml() -> Any:
    try:
        import yaml  # optional dependency
    except ImportError as error:
        raise ConfigError("YAML needs PyYAML: pip install 'rmqtools[export]'") from error
    return yaml
