"""``rmqtools allocate``: who would own which queue, by any strategy; nothing is changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.table import Table

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.allocate import STRATEGIES, AllocateByPins, AllocateMessageQueueStrategy, share, strategy_of
from rmqtools.cli.connection import (
    Json,
    NameServer,
    Settings,
    add_row,
    client_config,
    now,
    out,
    pairs,
    print_json,
    say,
    warn,
)
from rmqtools.errors import ConfigError
from rmqtools.group import GroupView

Owners = Mapping[MessageQueue, Sequence[str]]
"""The members that own each queue; normally one."""


Topic = Annotated[str, typer.Option("--topic", "-t", help="The topic to share.", show_default=False)]
Strategy = Annotated[
    str,
    typer.Option(
        "--strategy",
        "-s",
        help=f"{', '.join(STRATEGIES)}, or module:Class.",
        show_default=False,
    ),
]
Group = Annotated[
    str | None, typer.Option("--group", "-g", help="Whose live members share it; also for PINS.")
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="NAME=VALUE", help="An option of the strategy, e.g. ips=10.0.0.1."
    ),
]
Members = Annotated[
    str | None, typer.Option(metavar="ID,ID,...", help="Client ids (ip@name), instead of the live members.")
]
Queues = Annotated[
    str | None, typer.Option(metavar="BROKER:COUNT,...", help="Queues, instead of those of the route.")
]


def allocate(
    topic: Topic,
    strategy: Strategy,
    group: Group = None,
    options: Options = None,
    members: Members = None,
    queues: Queues = None,
    name_server: NameServer = "",
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show who would own which queue of a topic, next to who owns it now. Nothing is changed.

    With --members and --queues nobody is asked: no cluster is needed.

        rmqtools allocate -t orders -s PINNED_BY_IP -o ips=10.0.0.1 -o when_absent=nobody -g billing

        rmqtools allocate -t orders -s AVG --queues broker-a:4,broker-b:4 --members 10.0.0.1@a,10.0.0.2@b
    """
    made = strategy_of(strategy, **pairs(options))
    given_members = None if members is None else _client_ids(members)
    given_queues = None if queues is None else _queues(topic, queues)
    live: GroupView | None = None
    if isinstance(made, AllocateByPins) and group is None:
        raise ConfigError("strategy PINS: give --group, whose pins are to count")
    if given_members is None or given_queues is None or isinstance(made, AllocateByPins):
        with Admin(client_config(name_server, settings, ClientConfig)) as admin:
            given_queues = given_queues or admin.fetch_subscribe_queues(topic)
            live = admin.fetch_group(group) if group is not None else None
            made = _with_pins(admin, made, group)
    if given_members is None:
        given_members = _live_members(live)
    before = {queue: live.owners(queue) if live else [] for queue in given_queues}
    after = _shares(made, group or "", given_queues, given_members)
    if as_json:
        print_json([_values(queue, before, after) for queue in given_queues])
    else:
        _print(before, after, members=given_members, is_live=live is not None)


def _shares(
    strategy: AllocateMessageQueueStrategy,
    group: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
) -> dict[MessageQueue, list[str]]:
    owners: dict[MessageQueue, list[str]] = {queue: [] for queue in queues}
    for client_id in sorted(set(client_ids)):
        for queue in share(strategy, group, client_id, queues, client_ids):
            owners[queue].append(client_id)
    return owners


def _with_pins(
    admin: Admin, strategy: AllocateMessageQueueStrategy, group: str | None
) -> AllocateMessageQueueStrategy:
    if group is None or not isinstance(strategy, AllocateByPins):
        return strategy
    pins = admin.fetch_pins(group).at(now())
    warn(f"pins in force: {', '.join(pins.ips) or 'none'} (version {pins.version})")
    return strategy.with_pins(pins)


def _live_members(view: GroupView | None) -> list[str]:
    if view is None:
        raise ConfigError("nobody to share: give --group, whose live members count, or --members")
    if not view.members:
        raise ConfigError(f"group {view.group!r} has no live members: give --members")
    return [member.client_id for member in view.members]


def _client_ids(text: str) -> list[str]:
    client_ids = [part.strip() for part in text.split(",") if part.strip()]
    if not client_ids:
        raise ConfigError(f"--members {text!r}: want client ids, e.g. 10.0.0.1@a,10.0.0.2@b")
    return client_ids


def _queues(topic: str, text: str) -> list[MessageQueue]:
    queues: list[MessageQueue] = []
    for part in text.split(","):
        broker_name, _, count = part.strip().rpartition(":")
        if not (broker_name and count.isascii() and count.isdigit() and int(count)):
            raise ConfigError(f"--queues {text!r}: want BROKER:COUNT, e.g. broker-a:4,broker-b:4")
        queues += [MessageQueue(topic, broker_name, queue_id) for queue_id in range(int(count))]
    return sorted(queues)


def _print(before: Owners, after: Owners, *, members: Sequence[str], is_live: bool) -> None:
    table = Table("broker", "queue", *(["now"] if is_live else []), "then", *([""] if is_live else []))
    for queue, owners in after.items():
        place = [queue.broker_name, str(queue.queue_id)]
        moves = "moves" if set(before[queue]) != set(owners) else ""
        then = [_names(owners), moves] if is_live else [_names(owners)]
        add_row(table, *place, *([_names(before[queue])] if is_live else []), *then)
    out().print(table)
    counts = Counter(owner for owners in after.values() for owner in owners)
    for client_id in members:
        say(f"{client_id}: {counts[client_id]} of {len(after)} queues")
    if is_live:
        say(f"{sum(set(before[queue]) != set(owners) for queue, owners in after.items())} queues would move")


def _names(owners: Sequence[str]) -> str:
    return "\n".join(owners) or "nobody"


def _values(queue: MessageQueue, before: Owners, after: Owners) -> dict[str, object]:
    place = {"topic": queue.topic, "broker_name": queue.broker_name, "queue_id": queue.queue_id}
    return place | {"now": before[queue], "then": after[queue]}
