"""``rmqtools pin``: gives all queues of a group to some machines for a time."""

import getpass
import re
import socket
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import MAXYEAR, datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from ipaddress import ip_network
from typing import Annotated, Any

import typer

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.allocate import NO_PINS, AllocateByPins, Pins, client_address, newest, share
from rmqtools.cli.change import DryRun, Yes
from rmqtools.cli.connection import Json, NameServer, Settings, client_config, end_incomplete, partial_admin
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.moments import duration_option, moment_text
from rmqtools.cli.printing import Column, now, plain, print_json, print_table, say, warn
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.group import GroupMember, GroupView, pin_obstacles
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.number_of import number_of

Row = dict[str, Any]

app = typer.Typer(
    no_args_is_help=True,
    help="Give all queues of a group to some machines for a while, e.g. to one staging machine. "
    "Works for groups whose members share by the strategy PINS.",
)


class WhenAbsent(StrEnum):
    """Owners of the queues while no member runs on a pinned machine."""

    nobody = "nobody"
    everybody = "everybody"


Group = Annotated[
    str, typer.Option("--group", "-g", metavar="GROUP", help="The consumer group.", show_default=False)
]

Ips = Annotated[
    list[str],
    typer.Option(
        metavar="IP", help="A machine (192.168.0.6) or network (10.1.0.0/16); may be given several times."
    ),
]

AllowedGroups = Annotated[
    str,
    typer.Option(
        envvar="RMQTOOLS_ALLOWED_GROUPS",
        metavar="PATTERNS",
        help="The groups that may be pinned, e.g. `staging-*,test-*`. None by default: a name server "
        "has no access control, so set this in the environment of your staging machines.",
    ),
]


@app.command("set")
def set_(
    group: Group,
    ip: Ips,
    when_absent: Annotated[
        WhenAbsent,
        typer.Option(
            help="While no such machine is connected: messages wait (nobody), or all members share."
        ),
    ],
    name_server: NameServer = "",
    for_: Annotated[
        float | None, duration_option("Expire after this. Default: never.", name="--for", least=0.001)
    ] = None,
    allowed_groups: AllowedGroups = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Set the pins also over those of somebody else.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Set the pins in spite of all objections, also for other groups. "
            "Over somebody else's pins only with --replace.",
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
) -> None:
    """Pin a group: its members on these machines share all queues, the others get none.

    Refused without --replace: a group that somebody else has pinned now. Refused without --force: groups
    that are not allowed, machines without a member, groups that pop or broadcast, members with another
    strategy than PINS. Writes to every name server; exit code 1 if one of them did not store it.
    """
    ends = None if for_ is None else end_of_pin(for_)
    pins = Pins(0, ip, when_absent=when_absent.value, expires_at=ends, set_by=who())
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        view = admin.fetch_group(group)
        obstacles = [*not_allowed(group, allowed_groups), *pin_obstacles(view, ip)]
        held = _held(admin.fetch_pin_copies(group).values())
        if dry_run:
            _print_shares(view, pins, obstacles if held is None else [*obstacles, held])
            return
        _check(group, obstacles, force=force)
        if held is not None and not replace:
            raise RocketMQError(f"group {group!r} is not pinned (--replace does it all the same): {held}")
        written = admin.set_pins(group, pins)
    _say_pinned(group, written)


@app.command()
def clear(
    group: Group,
    name_server: NameServer = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
) -> None:
    """Remove the pins of a group: all members share again.

    Writes a newer, empty version instead of deleting. Exit code 1 if a name server did not store it.
    """
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        copies = admin.fetch_pin_copies(group).values()
        if all(isinstance(copy, Pins) and not copy.version for copy in copies):
            say(f"group {group} was never pinned: nothing to clear")
            return
        if held := _held(copies):
            warn(f"note: {held}")
        if dry_run:
            return
        written = admin.clear_pins(group, set_by=who())
    say(f"group {group} is not pinned any more (version {written.version})")


@app.command()
def show(
    name_server: NameServer = "",
    group: Annotated[
        str | None, typer.Option("--group", "-g", metavar="GROUP", help="Only this one.")
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show the pins of every name server, and their effect on the current members.

    Exit code 3 if a name server cannot be read, or a broker does not answer.
    """
    with partial_admin(client_config(name_server, settings, ClientConfig)) as admin:
        silent = {f"name server {one.addr}": one.error for one in admin.fetch_name_servers() if one.error}
        groups = [group] if group is not None else admin.fetch_pin_groups()
        copies = {name: admin.fetch_pin_copies(name) for name in groups}
        rows = _rows(copies, {name: _members(admin, name) for name in groups})
        if as_json:
            print_json(rows)
        else:
            _print_rows(rows, nothing="nothing is pinned" if not silent else "no pins are known")
        end_incomplete(silent)
        if any(isinstance(copy, RocketMQError) for each in copies.values() for copy in each.values()):
            raise typer.Exit(ExitCode.INCOMPLETE)


def _held(copies: Iterable[Pins | RocketMQError]) -> str | None:
    """Name another user who has pinned the group now; None: nobody."""
    pins = newest(NO_PINS, *(copy for copy in copies if isinstance(copy, Pins)))
    return _holder(pins) if pins.at(now()).ips and pins.set_by != who() else None


def _holder(pins: Pins) -> str:
    """Describe who pinned the group to what, since when, and from where."""
    since = f" since {moment_text(pins.set_at)}" if pins.set_at else ""
    source = f" from {pins.set_from}" if pins.set_from else ""
    until = f", until {moment_text(pins.expires_at)}" if pins.expires_at else ""
    return f"{pins.set_by or 'somebody'} has pinned it to {', '.join(pins.ips)}{since}{source}{until}"


def _check(group: str, obstacles: list[str], *, force: bool) -> None:
    """Refuse to pin a group that something speaks against; with ``force``, only warn."""
    if obstacles and not force:
        raise RocketMQError(
            f"group {group!r} is not pinned (--force does it all the same):\n{_listed(obstacles)}"
        )
    if obstacles:
        warn(f"warning: pinned in spite of:\n{_listed(obstacles)}")


def _say_pinned(group: str, pins: Pins) -> None:
    until = "until it is cleared" if pins.expires_at is None else f"until {moment_text(pins.expires_at)}"
    say(f"group {group} is pinned to {', '.join(pins.ips)}, {until} (version {pins.version})")
    say("its members follow within some 10 s: rmqtools group check " + group)


def _count(member: GroupMember, topics: set[str]) -> int | None:
    """Return the queues of these topics that a member owns; None: it does not say."""
    return None if member.error else sum(queue.topic in topics for queue in member.queues)


def _members(admin: Admin, group: str) -> list[str]:
    """Return the client ids of a group; none if no broker answers: pins are shown also then."""
    try:
        return admin.fetch_consumer_ids(group)
    except RocketMQError as error:
        warn(f"warning: the members of group {group} are not known: {error}")
        return []


def end_of_pin(seconds: float) -> datetime:
    """Return when a pin that is set now ends.

    Raises:
        ConfigError: later than a date can be.
    """
    try:
        return now() + timedelta(seconds=seconds)
    except OverflowError as error:
        raise ConfigError(
            f"--for is too long: no date is later than the year {MAXYEAR}; give less, or leave it out for a "
            "pin without end"
        ) from error


def not_allowed(group: str, patterns: str) -> list[str]:
    """Return why a group may not be pinned; empty: it may."""
    allowed = [pattern for pattern in re.split(r"[,\s]+", patterns) if pattern]
    if any(fnmatchcase(group, pattern) for pattern in allowed):
        return []
    known = ", ".join(allowed) or "none"
    return [f"it is not among the allowed groups ({known}): see --allowed-groups, RMQTOOLS_ALLOWED_GROUPS"]


def _rows(copies: dict[str, dict[str, Pins | RocketMQError]], members: dict[str, list[str]]) -> list[Row]:
    """One row for each group and name server."""
    rows: list[Row] = []
    for group, by_server in copies.items():
        known = [copy for copy in by_server.values() if isinstance(copy, Pins)]
        newest_pins = newest(*known) if known else None
        for addr, copy in by_server.items():
            place: Row = {"group": group, "name_server": addr}
            if isinstance(copy, Pins):
                rows.append(place | plain(copy) | {"state": _state(copy, newest_pins, members[group])})
            else:
                rows.append(place | {"state": f"cannot be read: {copy}"})
    return rows


def _print_rows(rows: list[Row], *, nothing: str) -> None:
    if not rows:
        say(nothing)
        return
    columns = [
        Column("group"),
        Column("name server", 2),
        Column("version", 1),
        Column("pinned to"),
        Column("when absent", 4),
        Column("until", 3),
        Column("set by", 5),
        Column("set at", 6),
        Column("from", 7),
        Column("state", style=lambda text: "" if str(text).startswith("in force: ") else "yellow"),
    ]
    names = ("group", "name_server", "version", "ips", "when_absent", "expires_at", "set_by", "set_at")
    print_table(columns, [tuple(_cell(row, name) for name in (*names, "set_from", "state")) for row in rows])


def _cell(row: Row, name: str) -> object:
    value = row.get(name)
    if name in ("expires_at", "set_at") and value is not None:
        return moment_text(datetime.fromisoformat(value))
    return value


def _state(pins: Pins, newest_pins: Pins | None, members: list[str]) -> str:
    """Describe the pins' effect on the current members."""
    if pins != newest_pins:
        return "outdated: rmqtools group check --repair"
    if not pins.ips:
        return "not pinned"
    if not pins.at(now()).ips:
        return "expired"
    if not members:
        return "not in force: the group has no members"
    pinned = members_on(members, pins.ips)
    if pinned:
        return f"in force: {len(pinned)} of {number_of(len(members), 'member')}"
    absent = {"nobody": "nobody consumes", "everybody": f"all {len(members)} members share"}
    return f"no pinned member: {absent.get(pins.when_absent or '', 'the when_absent of each member decides')}"


def members_on(client_ids: Sequence[str], ips: Sequence[str]) -> list[str]:
    """Return the members on some machines, by the addresses in their client ids."""
    networks = [ip_network(ip) for ip in ips]
    addresses = {client_id: client_address(client_id) for client_id in client_ids}
    return [
        client_id
        for client_id, address in addresses.items()
        if address is not None and any(address in network for network in networks)
    ]


def _print_shares(view: GroupView, pins: Pins, obstacles: list[str]) -> None:
    """Print how many queues each member has, and would have with the pins; and what speaks against them."""
    if obstacles:
        warn(f"without --force it would be refused:\n{_listed(obstacles)}")
    topics = consumed_topics(view)
    after = Counter(owner for owners in owners_after(view, pins).values() for owner in owners)
    rows = [(member.client_id, _count(member, topics), after[member.client_id]) for member in view.members]
    print_table(["member", "queues now", "queues then"], rows)
    say(f"group {view.group} is not pinned: --dry-run changes nothing")


def consumed_topics(view: GroupView) -> set[str]:
    """Return the topics of a group whose queues pins share: all but its retry topic."""
    return {queue.topic for queue in view.progress if not queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)}


def owners_after(view: GroupView, pins: Pins) -> dict[MessageQueue, list[str]]:
    """Return the members that own each queue with these pins, if all members share by them."""
    strategy = AllocateByPins(when_absent=pins.when_absent or "nobody", pins=pins)
    client_ids = [member.client_id for member in view.members]
    owners: dict[MessageQueue, list[str]] = {}
    for topic in sorted(consumed_topics(view)):
        queues = [queue for queue in view.progress if queue.topic == topic]
        owners |= {queue: [] for queue in queues}
        for client_id in client_ids:
            for queue in share(strategy, view.group, client_id, queues, client_ids):
                owners[queue].append(client_id)
    return owners


def _listed(texts: list[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def who() -> str:
    """Return the user and the machine, for ``set_by``."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # the user of a container may have no name
        user = "?"
    return f"{user}@{socket.gethostname()}"
