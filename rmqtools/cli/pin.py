"""``rmqtools pin``: give all queues of a group to some machines for a while."""

import getpass
import re
import socket
from datetime import MAXYEAR, datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated

import typer
from rich.table import Table

from rmqtools import Admin, ClientConfig
from rmqtools.allocate import Pins, newest
from rmqtools.cli.connection import (
    Json,
    NameServer,
    Settings,
    add_row,
    client_config,
    now,
    out,
    print_json,
    say,
    warn,
)
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.group import pin_obstacles

app = typer.Typer(
    no_args_is_help=True,
    help="Give all queues of a group to some machines for a while, e.g. to one staging machine. "
    "Works for groups whose members share by the strategy PINS.",
)

_DURATION = re.compile(r"(\d*[1-9]\d*)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class WhenAbsent(StrEnum):
    """Who gets the queues while no pinned machine is there."""

    nobody = "nobody"
    everybody = "everybody"


Group = Annotated[str, typer.Option("--group", "-g", help="The consumer group.", show_default=False)]


@app.command("set")
def set_(
    group: Group,
    ip: Annotated[
        list[str],
        typer.Option(help="A machine (192.168.0.6) or network (10.1.0.0/16); may be given several times."),
    ],
    when_absent: Annotated[
        WhenAbsent,
        typer.Option(help="While no such machine is there: messages wait (nobody), or all members share."),
    ],
    name_server: NameServer = "",
    for_: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="30m", help="End by itself after so many s, m, h or d. Default: never."
        ),
    ] = None,
    allowed_groups: Annotated[
        str,
        typer.Option(
            envvar="RMQTOOLS_ALLOWED_GROUPS",
            metavar="PATTERNS",
            help="The groups that may be pinned, e.g. 'staging-*,test-*'. None by default: a name server "
            "has no access control, so say in the environment of your staging machines what is theirs.",
        ),
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Set it whatever speaks against it, also for other groups.")
    ] = False,
    settings: Settings = None,
) -> None:
    """Pin a group: its members on these machines share all queues, the others get none.

    Refused unless --force: groups that are not allowed, machines that no member runs on, groups that pop or
    broadcast, members that do not share by PINS. Written to every name server; exit code 1 if one does not
    have it.
    """
    ends = None if for_ is None else end_of_pin(for_)
    pins = Pins(0, ip, when_absent=when_absent.value, expires_at=ends, set_by=_who())
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        obstacles = [*_not_allowed(group, allowed_groups), *pin_obstacles(admin.fetch_group(group), ip)]
        if obstacles and not force:
            raise RocketMQError(
                f"group {group!r} is not pinned (--force does it all the same):\n{_listed(obstacles)}"
            )
        if obstacles:
            warn(f"warning: pinned in spite of:\n{_listed(obstacles)}")
        written = admin.set_pins(group, pins)
    until = "until it is cleared" if ends is None else f"until {_time(ends)}"
    say(f"group {group} is pinned to {', '.join(ip)}, {until} (version {written.version})")
    say("its members follow within some 10 s: rmqtools group check " + group)


@app.command()
def clear(group: Group, name_server: NameServer = "", settings: Settings = None) -> None:
    """Pin a group to nothing: all members share again.

    Exit code 1 if a name server does not have it; nothing is deleted, a newer version says so.
    """
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        written = admin.clear_pins(group, set_by=_who())
    say(f"group {group} is not pinned any more (version {written.version})")


@app.command()
def show(
    name_server: NameServer = "",
    group: Annotated[str | None, typer.Option("--group", "-g", help="Only this one.")] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show what is pinned, as every name server has it; exit code 1 if one of them cannot be read."""
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        groups = [group] if group is not None else admin.fetch_pin_groups()
        copies = {name: admin.fetch_pin_copies(name) for name in groups}
    if as_json:
        print_json(copies)
    else:
        _print_copies(copies)
    if any(isinstance(copy, RocketMQError) for each in copies.values() for copy in each.values()):
        raise typer.Exit(1)


def end_of_pin(text: str) -> datetime:
    """When a pin ends that is set now, for a :func:`duration`.

    Raises:
        ConfigError: no duration, or one that no date is far enough for.
    """
    try:
        return now() + duration(text)
    except OverflowError as error:
        raise _too_long(text) from error


def duration(text: str) -> timedelta:
    """``90s``, ``30m``, ``2h``, ``1d``.

    Raises:
        ConfigError: something else, or too much.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{text!r} is no duration: want e.g. 90s, 30m, 2h or 1d")
    try:
        return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
    except (OverflowError, ValueError) as error:  # ValueError: thousands of digits
        raise _too_long(text) from error


def _too_long(text: str) -> ConfigError:
    return ConfigError(
        f"--for {text!r} is too long: no date is later than the year {MAXYEAR}; give less, or leave it out "
        "for a pin without end"
    )


def _not_allowed(group: str, patterns: str) -> list[str]:
    allowed = [pattern for pattern in re.split(r"[,\s]+", patterns) if pattern]
    if any(fnmatchcase(group, pattern) for pattern in allowed):
        return []
    known = ", ".join(allowed) or "none"
    return [f"it is not among the allowed groups ({known}): see --allowed-groups, RMQTOOLS_ALLOWED_GROUPS"]


def _print_copies(copies: dict[str, dict[str, Pins | RocketMQError]]) -> None:
    if not copies:
        say("nothing is pinned")
        return
    table = Table("group", "name server", "version", "pinned to", "when absent", "until", "set by", "")
    for group, by_server in copies.items():
        known = [copy for copy in by_server.values() if isinstance(copy, Pins)]
        newest_pins = newest(*known) if known else None
        for addr, copy in by_server.items():
            if isinstance(copy, Pins):
                add_row(table, group, addr, *_cells(copy, newest_pins))
            else:
                add_row(table, group, addr, "?", "", "", "", "", f"cannot be read: {copy}")
    out().print(table)


def _cells(pins: Pins, newest_pins: Pins | None) -> list[str]:
    until = _time(pins.expires_at) if pins.expires_at else ""
    pinned = ", ".join(pins.ips) or "-"
    return [str(pins.version), pinned, pins.when_absent or "", until, pins.set_by, _state(pins, newest_pins)]


def _state(pins: Pins, newest_pins: Pins | None) -> str:
    if pins != newest_pins:
        return "outdated: set or clear it again"
    if not pins.ips:
        return "not pinned"
    return "in force" if pins.at(now()).ips else "expired"


def _listed(texts: list[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _who() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        user = "?"
    return f"{user}@{socket.gethostname()}"
