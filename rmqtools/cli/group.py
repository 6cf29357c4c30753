"""``rmqtools group``: the members of a consumer group, their queues, and its problems."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.cli.change import DryRun, Yes, agreed
from rmqtools.cli.connection import Json, NameServer, Settings, client_config, complete_group, partial_admin
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.findings import Ignore, MinSeverity, counted, finding_values, left_out
from rmqtools.cli.group_member import show_member
from rmqtools.cli.moments import duration_option
from rmqtools.cli.printing import (
    Column,
    finding,
    print_json,
    print_table,
    print_tables,
    say,
    table_lines,
    terminal_width,
    time_text,
    warn,
    warning,
)
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.group import (
    Finding,
    FindingKind,
    GroupCheck,
    GroupLimits,
    GroupMember,
    GroupView,
    QueueProgress,
    Severity,
)
from rmqtools.model.append_mark import EXACT_GROUP_PREFIX
from rmqtools.model.group_view import DEFAULT_LIMITS
from rmqtools.model.queue import queue_name
from rmqtools.number_of import number_of
from rmqtools.unknown_name import unknown_name

_UNCLEAR = (  # there may be more than is found
    FindingKind.MEMBER_SILENT,
    FindingKind.BROKER_SILENT,
    FindingKind.NAME_SERVER_SILENT,
)
_AT_ONCE = 16  # groups asked about at the same time
SYSTEM_GROUPS = frozenset(
    {
        *(
            "DEFAULT_CONSUMER",
            "DEFAULT_PRODUCER",
            "TOOLS_CONSUMER",
            "FILTERSRV_CONSUMER",
            "SELF_TEST_C_GROUP",
        ),
        *("SCHEDULE_CONSUMER", "__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP"),
        *("CID_ONSAPI_OWNER", "CID_ONSAPI_PERMISSION", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL"),
    }
)
"""Groups that brokers make for themselves: MixAll.PREDEFINE_GROUP_SET, SubscriptionGroupManager.init."""
_LOOK_PAUSE = 2.0  # seconds between two checks of check --within

app = typer.Typer(
    no_args_is_help=True, help="Consumer groups: members, owners of queues, problems, offsets, settings."
)

Group = Annotated[
    str, typer.Argument(help="The consumer group.", show_default=False, autocompletion=complete_group)
]

MaxLag = Annotated[
    int | None, typer.Option(min=0, metavar="NUMBER", help="Report a group that is further behind.")
]
MaxAge = Annotated[float | None, duration_option("Report a group that has not consumed an older message.")]


@app.command()
def show(
    group: Group,
    name_server: NameServer = "",
    member: Annotated[
        str,
        typer.Option(metavar="ID", help="Show one member from inside: its client id, or how that begins."),
    ] = "",
    stack: Annotated[
        bool, typer.Option("--stack", help="With --member: the stacks of its threads and tasks.")
    ] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a group's members, the queues each says it owns, and the group's offsets.

    With --member: the queues, fetched messages and rates of one member, by its own report.
    """
    if stack and not member:
        raise ConfigError("--stack shows the stack of one member: give --member ID")
    config = client_config(name_server, settings, ClientConfig)
    with partial_admin(config) as admin:
        if member:
            show_member(admin, group, member, namespace=config.namespace, stack=stack, as_json=as_json)
            return
        check = checked_group(admin, group)
        if as_json:
            print_json(_as_values(check))
            return
        say(_headline(check.view))
        if check.view.members:
            _print_members(check)
        if check.view.progress:
            _print_queues(check)


@app.command("list")
def list_(
    name_server: NameServer = "",
    system: Annotated[bool, typer.Option("--system", help="RocketMQ's own groups too.")] = False,
    idle: Annotated[
        float | None,
        duration_option("Only groups without members whose last consumed message is older than this."),
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List all groups: members, messages not consumed yet, messages consumed a second.

    Where a group has committed nothing yet, all messages of the queue count as not consumed. "last consumed"
    is when the newest consumed message was stored; brokers do not know when it was consumed.
    """
    with partial_admin(client_config(name_server, settings, ClientConfig)) as admin:
        names = [name for name in admin.fetch_group_list() if system or not is_system_group(name)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            rows = list(pool.map(lambda name: _summary(admin, name), names))
        if idle is not None:
            since_ms = SYSTEM_CLOCK.now_ms() - idle * 1000
            rows = [row for row in rows if not row["members"] and row["last_consumed_ms"] < since_ms]
        for row in rows:
            row["last_consumed"] = time_text(row.pop("last_consumed_ms"))
        if as_json:
            print_json(rows)
            return
        columns = [Column("group"), Column("members"), Column("lag", style=warning), Column("rate/s", 1)]
        shown = ("group", "members", "lag", "consume_tps", "message_model", "consume_type", "last_consumed")
        table = [*columns, Column("model", 3), Column("type", 2), Column("last consumed", 4)]
        print_table(table, [tuple(row[name] for name in shown) for row in rows])


@app.command()
def delete(
    group: Group,
    name_server: NameServer = "",
    keep_offsets: Annotated[bool, typer.Option("--keep-offsets", help="Keep its offsets.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
) -> None:
    """Delete a group's settings and offsets on all brokers. Refused while it has members.

    Its retry and dead-letter topics are kept: delete them with "topic delete".
    """
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        require_group(admin, group)
        if ids := admin.fetch_consumer_ids(group):
            raise RocketMQError(
                f"group {group!r} has {number_of(len(ids), 'member')}, and members would create "
                f"it again: stop them first ({', '.join(ids)})"
            )
        lost = "its settings" if keep_offsets else "its settings and offsets"
        if not agreed(f"Delete group {group}, {lost}, on all brokers?", yes=yes, dry_run=dry_run):
            return
        admin.delete_group(group, clean_offset=not keep_offsets)
    say(f"group {group} is deleted: {lost}")


def checked_group(admin: Admin, group: str, limits: GroupLimits = DEFAULT_LIMITS) -> GroupCheck:
    """Return everything about a group, with its problems; errors as of :func:`require_group`."""
    check = admin.check_group(group, limits=limits)
    _require(admin, check)
    return check


def require_group(admin: Admin, group: str) -> None:
    """Do nothing if a server knows a group.

    Raises:
        RocketMQError: all brokers answer and none knows the group; names one that is spelled alike.
    """
    view, copies = admin.fetch_group(group), admin.fetch_pin_copies(group)
    _require(admin, GroupCheck(view=view, pin_copies=copies))


def _require(admin: Admin, check: GroupCheck) -> None:
    group = check.view.group
    if not check.is_known and group not in (known := admin.fetch_group_list()):
        raise unknown_group(group, known)


def unknown_group(group: str, known: Iterable[str]) -> RocketMQError:
    """Make the error of a group that no broker knows; its text names one that is spelled alike."""
    unknown = unknown_name("group", group, [name for name in known if not is_system_group(name)])
    return RocketMQError(
        f"{unknown}; a group none of whose topics exists is known to no broker either: check their spelling"
    )


def _summary(admin: Admin, group: str) -> dict[str, Any]:
    """One row of ``list``."""
    connection = admin.fetch_consumer_connection(group)
    stats = admin.fetch_consume_stats(group)
    lag = sum(
        progress.lag for progress in admin.fetch_progress(group, stats=stats, connection=connection).values()
    )
    return {
        "group": group,
        "members": len(connection.connection_set),
        "lag": lag,
        "consume_tps": stats.consume_tps,
        "message_model": connection.message_model,
        "consume_type": connection.consume_type,
        "last_consumed_ms": max((each.last_timestamp for each in stats.offset_table.values()), default=0),
    }


def is_system_group(group: str) -> bool:
    """Return whether RocketMQ made a group for itself, or an exact appender for its locks and hints."""
    return group.startswith(("CID_RMQ_SYS_", EXACT_GROUP_PREFIX)) or group in SYSTEM_GROUPS


@app.command()
def check(
    group: Group,
    name_server: NameServer = "",
    within: Annotated[
        float, duration_option("Repeat until nothing is found: a restart takes some 30 s.")
    ] = 0,
    max_stall: Annotated[
        float,
        duration_option(
            "Report longer listener calls, and longer times without a fetch or a consumed message."
        ),
    ] = 60,
    max_lag: MaxLag = None,
    max_age: MaxAge = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="First write the newest valid pins to every name server, over all other copies."
        ),
    ] = False,
    min_severity: MinSeverity = Severity.WARNING,
    ignore: Ignore = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing if nothing is found: for cron.")
    ] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Report a group's problems: queues with no owner or two, and members that differ, fail or are stuck.

    Exit code 0: nothing; 1: something, or no broker knows the group; 3: nothing is found but members or
    servers that do not answer.
    """
    config = client_config(name_server, settings, ClientConfig)
    limits = GroupLimits(listener=max_stall, fetch=max_stall, max_lag=max_lag, max_age=max_age)
    with Admin(config, partial=True) as admin:
        if repair:
            _repair_pins(admin, group)
        check, findings = _findings(lambda: checked_group(admin, group, limits), within, min_severity, ignore)
    if findings or not quiet:
        print_json([finding_values(one) for one in findings]) if as_json else _print_findings(check, findings)
    if findings:
        raise typer.Exit(
            ExitCode.INCOMPLETE if all(one.kind in _UNCLEAR for one in findings) else ExitCode.NO
        )


def _repair_pins(admin: Admin, group: str) -> None:
    written = admin.repair_pins(group)
    if written is None:
        warn(f"pins of group {group}: all copies are equal, nothing to repair")
        return
    ips = ", ".join(written.ips) or "no machine"
    warn(f"pins of group {group}: version {written.version} ({ips}) is on all name servers now")


def _findings(
    look: Callable[[], GroupCheck], within: float, least: Severity, ignored: Sequence[str] | None
) -> tuple[GroupCheck, list[Finding]]:
    """Look until nothing is found or the time is up, and return the last check and what counts of it."""
    looking = Retrying(
        retry=retry_if_result(lambda found: bool(found[1])),
        stop=stop_after_delay(within),
        wait=wait_fixed(_LOOK_PAUSE),
    )

    def attempt() -> tuple[GroupCheck, list[Finding]]:
        check = look()
        return check, counted(check.findings, least, ignored)

    try:
        return looking(attempt)
    except RetryError as error:
        last: tuple[GroupCheck, list[Finding]] = error.last_attempt.result()
        return last


def _print_findings(check: GroupCheck, findings: Sequence[Finding]) -> None:
    if not findings:
        say(f"group {check.view.group}: nothing found{left_out(check.findings, findings)}")
        return
    columns = [Column("finding", style=finding), Column("what")]
    print_table(columns, [(found.kind.value, found.text) for found in findings])


def _headline(view: GroupView) -> str:
    proxied = f", {len(view.proxied)} more through a proxy" if view.proxied else ""
    if not view.members:
        return f"group {view.group}: no members{proxied}"
    model, kind = (view.message_model or "?").lower(), (view.consume_type or "?").lower()
    messages = number_of(sum(progress.lag for progress in view.progress.values()), "message")
    members = f"{number_of(len(view.members), 'member')}{proxied}"
    return f"group {view.group}: {members}, {model}, {kind}, {messages} behind"


def _print_members(check: GroupCheck) -> None:
    columns = [
        Column("member"),
        Column("queues"),
        Column("address", 6),
        Column("language", 5),
        Column("version", 4),
        Column("strategy", 1),
        Column("order", 3),
        Column("pins", 7),
        Column("subscribes to", 2),
        Column("note", style=finding),
    ]
    print_table(columns, [_member_row(check, member) for member in check.view.members])
    for member in check.view.members:
        if member.error:
            say(f"{member.client_id} does not answer: {member.error}")


def _member_row(check: GroupCheck, member: GroupMember) -> tuple[object, ...]:
    known = (member.client_id, member.addr, member.language, member.version)
    client_id, addr, language, version = known
    if member.error:
        return (client_id, None, addr, language, version, None, None, None, None, "does not answer")
    order = None if member.orderly is None else "in order" if member.orderly else "concurrent"
    subscribed = [f"{topic} {expression}" for topic, expression, _ in sorted(member.subscriptions)]
    own = (member.strategy, order, member.pin_version, subscribed, _note(check, member.client_id))
    return (client_id, len(member.queues), addr, language, version, *own)


def _print_queues(check: GroupCheck) -> None:
    columns = [
        Column("topic", 2),
        Column("queue"),
        Column("owner"),
        Column("next offset", 3),
        Column("end", 4),
        Column("lag", style=warning),
        Column("note", 1, finding),
    ]
    rows = [_queue_row(check, queue, progress) for queue, progress in check.view.progress.items()]
    if "topic" not in table_lines(columns, rows, terminal_width())[1]:
        print_table(columns, rows)
        return
    tables: defaultdict[str, list[tuple[object, ...]]] = defaultdict(list)
    for topic, *cells in rows:
        tables[f"topic {topic}:"].append(tuple(cells))
    print_tables(columns[1:], tables)


def _queue_row(check: GroupCheck, queue: MessageQueue, progress: QueueProgress) -> tuple[object, ...]:
    return (
        queue.topic,
        queue_name(queue),
        check.view.owners(queue) or _no_owner(check.view),
        progress.consumer_offset,
        progress.max_offset,
        progress.lag,
        _note(check, queue),
    )


def _note(check: GroupCheck, about: MessageQueue | str) -> str:
    """Return the kinds of the findings about a queue, or a member's client id."""
    found = [one.kind.value for one in check.findings if about == one.subject or about in one.queues]
    return ", ".join(dict.fromkeys(found))


def _no_owner(view: GroupView) -> str:
    """Return ``-`` for "no owner", or ``?`` if a member that does not answer may be the owner."""
    return "?" if any(member.error for member in view.members) else "-"


def _as_values(check: GroupCheck) -> dict[str, object]:
    """Make values for JSON: queues are objects, not keys."""
    view = check.view
    return {
        "group": view.group,
        "message_model": view.message_model,
        "consume_type": view.consume_type,
        "members": view.members,
        "proxied": view.proxied,
        "queues": [_queue_values(view, queue, progress) for queue, progress in view.progress.items()],
        "missing_topics": view.missing_topics,
        "silent_brokers": view.silent_brokers,
        "findings": [finding_values(one) for one in check.findings],
    }


def _queue_values(view: GroupView, queue: MessageQueue, progress: QueueProgress) -> dict[str, object]:
    return {
        "topic": queue.topic,
        "broker_name": queue.broker_name,
        "queue_id": queue.queue_id,
        "owners": view.owners(queue),
        "consumer_offset": progress.consumer_offset,
        "max_offset": progress.max_offset,
        "lag": progress.lag,
    }
