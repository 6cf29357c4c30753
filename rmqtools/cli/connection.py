"""Shared by all commands: how to reach the cluster, and the options that say so."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Annotated, TypeVar

import typer

from rmqtools import Admin
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.pairs import pairs
from rmqtools.cli.printing import warn
from rmqtools.cli.profile import SECRETS, profile_settings, read_secret_files, refuse_secret
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.config import ClientConfig
from rmqtools.config.text import match_name
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.model.broker_view import common_clock
from rmqtools.visible_text import visible

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
        help="A setting of the client, e.g. namespace=staging or request_timeout=10; several times. "
        "The environment (RMQTOOLS_ACCESS_KEY, RMQTOOLS_SECRET_KEY, ...) and profiles do the same.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs, not tables.")]

_ENVIRONMENT_PREFIX = "RMQTOOLS_"
_COMPLETION_SECONDS = "1"  # a shell waits for it
_PLAIN_NAMES = {match_name(name): name for name in SECRETS}


def client_config(
    name_server: str,
    settings: Sequence[str] | None,
    kind: type[C],
    *,
    profile: str | None = None,
    **more: str,
) -> C:
    """Make a config of the command line's settings; they take precedence over environment and profile.

    ``profile``: this one, and nothing from the environment. ``more``: settings that the command itself has
    chosen.

    Raises:
        ConfigError: an unknown setting, one not of the form NAME=VALUE, a secret, or no name server.
    """
    known = {f.name for f in fields(kind)}
    values = {name: value for name, value in profile_settings(profile).items() if name in known}
    values |= {} if profile else _environment(known)
    for name, value in pairs(settings).items():
        refuse_secret(_PLAIN_NAMES.get(match_name(name), name), "--set")
        values[name] = value
    values |= more
    if name_server:
        values["name_server"] = name_server
    if not values.get("name_server"):
        raise ConfigError(
            "no name server: give --name-server HOST:PORT, or set NAMESRV_ADDR, or rmqtools profile use NAME"
        )
    return kind.from_mapping(values)


@contextmanager
def partial_admin(config: ClientConfig, *, partial: bool = True) -> Iterator[Admin]:
    """Yield an administration for commands that only show something: one hung broker does not hide the rest.

    At the end, brokers that the results lack are named on standard error, and the exit code is 3: also where
    the command found nothing, because they may have it. ``partial``: False for a run that changes something.
    """
    with Admin(config, partial=partial) as admin:
        try:
            yield admin
        except typer.Exit:
            if not admin.missing_brokers:
                raise
        missing = admin.missing_brokers
    end_incomplete({f"broker {name}": error for name, error in missing.items()})


def end_incomplete(missing: Mapping[str, object]) -> None:
    """End with exit code 3 if what is printed lacks servers; name them with the reasons."""
    for name, error in missing.items():
        warn(f"warning: without {name}, which does not answer: {error}")
    if missing:
        raise typer.Exit(ExitCode.INCOMPLETE)


def broker_clock(admin: Admin, broker_name: str = "") -> Callable[[], int]:
    """Return a clock that shows the time of a broker, by default that of most: store times are theirs."""
    return lambda: broker_now_ms(admin.fetch_clocks(), broker_name)


def broker_now_ms(clocks: Mapping[str, float], broker_name: str = "") -> int:
    """Return the time of a broker, by default that of most; ``clocks``: of ``Admin.fetch_clocks``."""
    return SYSTEM_CLOCK.now_ms() + round(1000 * clocks.get(broker_name, common_clock(clocks)))


def _environment(known: set[str]) -> dict[str, str]:
    """Return the settings in RMQTOOLS_* variables; secrets may be in files (RMQTOOLS_SECRET_KEY_FILE)."""
    wanted = known | {f"{name}_file" for name in SECRETS}
    given = {name: os.environ.get(_ENVIRONMENT_PREFIX + name.upper()) for name in wanted}
    return read_secret_files({name: value for name, value in given.items() if value is not None})


def complete_topic(context: typer.Context, incomplete: str) -> list[str]:
    """Return the topics of the cluster that begin like this, for the shell."""
    return _complete(context, incomplete, Admin.fetch_topic_list)


def complete_group(context: typer.Context, incomplete: str) -> list[str]:
    """Return the groups of the cluster that begin like this, for the shell."""
    return _complete(context, incomplete, Admin.fetch_group_list)


def _complete(context: typer.Context, incomplete: str, fetch: Callable[[Admin], list[str]]) -> list[str]:
    """Return names that act on no terminal; none if no server answers soon: a shell shows no errors."""
    name_server = context.params.get("name_server") or os.environ.get("NAMESRV_ADDR", "")
    try:
        config = client_config(
            name_server,
            context.params.get("settings"),
            ClientConfig,
            request_timeout=_COMPLETION_SECONDS,
        )
        with Admin(config) as admin:
            return [name for name in fetch(admin) if name.startswith(incomplete) and name == visible(name)]
    except RocketMQError:
        return []
