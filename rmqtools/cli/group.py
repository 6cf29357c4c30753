"""``rmqtools group``: who is in a consumer group, who reads what, what is wrong with it."""

from typing import Annotated

import typer
from rich.table import Table
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.allocate import NO_PINS
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
from rmqtools.errors import RocketMQError
from rmqtools.group import Finding, FindingKind, GroupMember, GroupView, QueueProgress, check_group

FOUND, CANNOT_TELL = 1, 2  # exit codes of check
_LOOK_PAUSE = 2.0  # seconds between two looks of check --within

app = typer.Typer(
    no_args_is_help=True, help="Who is in a consumer group, who reads what, what is wrong with it."
)

Group = Annotated[str, typer.Argument(help="The consumer group.", show_default=False)]


@app.command()
def show(
    group: Group, name_server: NameServer = "", settings: Settings = None, as_json: Json = False
) -> None:
    """Show a group's members, the queues each says it owns, and how far the group is."""
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        view = admin.fetch_group(group)
    if as_json:
        print_json(_as_values(view))
        return
    say(_headline(view))
    if view.members:
        out().print(_members_table(view))
    if view.progress:
        out().print(_queues_table(view))


@app.command()
def check(
    group: Group,
    name_server: NameServer = "",
    within: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Look again for so long: after a restart a group takes some 30 s."
        ),
    ] = 0,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a group: queues owned by nobody or by two, members that differ or get nothing.

    Exit code 0: nothing, 1: something, 2: it cannot be told (a member or a server does not answer).
    """
    config = client_config(name_server, settings, ClientConfig)
    try:
        with Admin(config) as admin:
            findings = _findings(admin, group, within)
    except RocketMQError as error:
        warn(f"error: {error}")
        raise typer.Exit(CANNOT_TELL) from error
    if as_json:
        print_json(findings)
    else:
        _print_findings(group, findings)
    if findings:
        unclear = all(finding.kind == FindingKind.MEMBER_SILENT for finding in findings)
        raise typer.Exit(CANNOT_TELL if unclear else FOUND)


def _findings(admin: Admin, group: str, within: float) -> list[Finding]:
    """What is found at the last look: the first at which all is well, or the one when time is up."""
    looking = Retrying(
        retry=retry_if_result(bool), stop=stop_after_delay(within), wait=wait_fixed(_LOOK_PAUSE)
    )
    try:
        return list(looking(_look, admin, group))
    except RetryError as error:
        return list(error.last_attempt.result())


def _look(admin: Admin, group: str) -> list[Finding]:
    view = admin.fetch_group(group)
    shares_by_pins = any(member.strategy == "PINS" for member in view.members)
    pins = admin.fetch_pins(group).at(now()) if shares_by_pins else NO_PINS
    return check_group(view, pins)


def _print_findings(group: str, findings: list[Finding]) -> None:
    if not findings:
        say(f"group {group}: nothing found")
        return
    table = Table("finding", "what")
    for finding in findings:
        add_row(table, finding.kind.value, finding.text)
    out().print(table)


def _headline(view: GroupView) -> str:
    if not view.members:
        return f"group {view.group}: no members"
    model, kind = (view.message_model or "?").lower(), (view.consume_type or "?").lower()
    lags = [progress.lag for progress in view.progress.values()]
    lag = sum(lag for lag in lags if lag is not None)
    return f"group {view.group}: {len(view.members)} members, {model}, {kind}, {lag} messages behind"


def _members_table(view: GroupView) -> Table:
    table = Table(
        "member", "address", "language", "version", "strategy", "order", "pins", "queues", "subscribes to"
    )
    for member in view.members:
        known = [member.client_id, member.addr, member.language or "?", member.version]
        add_row(table, *known, *([member.error] if member.error else _own_words(member)))
    return table


def _own_words(member: GroupMember) -> list[str]:
    order = "?" if member.orderly is None else "in order" if member.orderly else "concurrent"
    pins = "" if member.pin_version is None else f"version {member.pin_version}"
    subscribed = [f"{topic} {expression}" for topic, expression, _ in sorted(member.subscriptions)]
    return [member.strategy or "?", order, pins, str(len(member.queues)), ", ".join(subscribed)]


def _queues_table(view: GroupView) -> Table:
    table = Table("topic", "broker", "queue", "owner", "next offset", "end", "behind")
    for queue, progress in view.progress.items():
        owners = "\n".join(view.owners(queue)) or _nobody(view)
        add_row(table, queue.topic, queue.broker_name, queue.queue_id, owners, *_numbers(progress))
    return table


def _numbers(progress: QueueProgress) -> list[str]:
    shown = [progress.consumer_offset, progress.max_offset, progress.lag]
    return ["-" if number is None else str(number) for number in shown]


def _nobody(view: GroupView) -> str:
    """A member that does not answer may be the owner."""
    return "?" if any(member.error for member in view.members) else "-"


def _as_values(view: GroupView) -> dict[str, object]:
    """For JSON: queues are objects, not keys."""
    return {
        "group": view.group,
        "message_model": view.message_model,
        "consume_type": view.consume_type,
        "members": view.members,
        "queues": [_queue_values(view, queue, progress) for queue, progress in view.progress.items()],
        "missing_topics": view.missing_topics,
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
