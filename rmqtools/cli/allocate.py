"""``rmqtools allocate``: shows which member would own which queue by a strategy; changes nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.allocate import STRATEGIES, AllocateByPins, AllocateMessageQueueStrategy, share, strategy_of
from rmqtools.cli.connection import Json, NameServer, Settings, client_config
from rmqtools.cli.pairs import pairs
from rmqtools.cli.printing import Column, now, print_json, print_table, say, warn, warning
from rmqtools.cli.saving.picture import check_picture, save_picture
from rmqtools.errors import ConfigError
from rmqtools.group import GroupView
from rmqtools.model.queue import queue_name
from rmqtools.number_of import number_of
from rmqtools.plot import Owners, shares_figure

Topic = Annotated[
    str, typer.Option("--topic", "-t", metavar="TOPIC", help="The topic to share.", show_default=False)
]
Strategy = Annotated[
    str,
    typer.Option(
        "--strategy",
        "-s",
        metavar="STRATEGY",
        help=f"{', '.join(STRATEGIES)}, or module:Class.",
        show_default=False,
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group", "-g", metavar="GROUP", help="The group whose live members share it, and whose pins count."
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the strategy, e.g. ips=10.0.0.1."),
]
Members = Annotated[
    str | None, typer.Option(metavar="ID,ID,...", help="Client ids (ip@name), instead of the live members.")
]
Queues = Annotated[
    str | None,
    typer.Option("--queue-counts", metavar="BROKER:COUNT,...", help="Queues, instead of those of the route."),
]

Compare = Annotated[
    list[str] | None,
    typer.Option(metavar="STRATEGY", help="Draw this strategy beside; several times, with --plot."),
]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Save a picture, queues by members: .svg, .png or .pdf (extra plot)."),
]


def allocate(
    topic: Topic,
    strategy: Strategy,
    group: Group = None,
    options: Options = None,
    members: Members = None,
    queues: Queues = None,
    plot: Plot = None,
    compare: Compare = None,
    name_server: NameServer = "",
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show which member would own each queue of a topic, beside its owner now. Changes nothing.

    With --members and --queue-counts no cluster is needed.

        rmqtools allocate -t orders -g pay -s PINNED_BY_IP --option ips=10.0.0.1 --option when_absent=nobody

        rmqtools allocate -t orders -s AVG --queue-counts broker-a:4 --members 10.0.0.1@a,10.0.0.2@b

        rmqtools allocate -t orders -s AVG --compare CONSISTENT_HASH -g billing --plot shares.svg
    """
    check_picture(plot)
    if compare and plot is None:
        raise ConfigError("--compare draws strategies beside each other: give --plot FILE too")
    others = {name: strategy_of(name) for name in compare or ()}
    sharing = _sharing(strategy, pairs(options), group, members)
    sharing.queues = [] if queues is None else _queues(topic, queues)
    if sharing.needs_cluster():
        with Admin(client_config(name_server, settings, ClientConfig)) as admin:
            sharing.look_up(admin, topic)
    before, after = sharing.owners_now(), sharing.owners(sharing.strategy)
    if plot is not None:
        shares = {strategy: after} | {name: sharing.owners(other) for name, other in others.items()}
        title = f"{topic}, group {group}" if group else topic
        now = before if sharing.live else None
        save_picture(plot, lambda: shares_figure(shares, before=now, title=title))
    if as_json:
        print_json([_values(queue, before, after) for queue in sharing.queues])
    else:
        _print(before, after, members=sharing.members, is_live=sharing.live is not None)


@dataclass(slots=True)
class _Sharing:
    """The inputs of a share: as given on the command line, then completed by the cluster.

    Attributes:
        strategy: with the group's live pins, if it uses pins and the cluster was asked.
        group: None: none was given.
        members: client ids; empty until known.
        queues: empty until known.
        live: the group's members and their queues now; None: not asked.
        pins_must_say: ``when_absent`` was not given, so it comes from the group's pins.
    """

    strategy: AllocateMessageQueueStrategy
    group: str | None
    members: list[str]
    queues: list[MessageQueue] = field(default_factory=list)
    live: GroupView | None = None
    pins_must_say: bool = False

    def needs_cluster(self) -> bool:
        """Return whether the command line did not give everything."""
        uses_pins = isinstance(self.strategy, AllocateByPins)
        if uses_pins and self.group is None:
            raise ConfigError("strategy PINS: give --group, whose pins are to count")
        return uses_pins or not (self.members and self.queues)

    def look_up(self, admin: Admin, topic: str) -> None:
        """Take from the cluster what the command line did not give."""
        self.queues = self.queues or admin.fetch_subscribe_queues(topic)
        if self.group is not None:
            self.live = admin.fetch_group(self.group)
            self.strategy = _with_pins(admin, self.strategy, self.group, must_say=self.pins_must_say)
        self.members = self.members or _live_members(self.live)

    def owners_now(self) -> dict[MessageQueue, list[str]]:
        """Return each queue's owners in the group's live members."""
        return {queue: self.live.owners(queue) if self.live else [] for queue in self.queues}

    def owners(self, strategy: AllocateMessageQueueStrategy) -> dict[MessageQueue, list[str]]:
        """Return each queue's owners by a strategy."""
        owners: dict[MessageQueue, list[str]] = {queue: [] for queue in self.queues}
        for client_id in sorted(set(self.members)):
            for queue in share(strategy, self.group or "", client_id, self.queues, self.members):
                owners[queue].append(client_id)
        return owners


def _sharing(strategy: str, options: Mapping[str, str], group: str | None, members: str | None) -> _Sharing:
    """Make the strategy and parse the members of the command line."""
    pins_must_say = strategy == AllocateByPins.name and "when_absent" not in options
    given = {**options, "when_absent": "nobody"} if pins_must_say else options
    made = strategy_of(strategy, **given)
    client_ids = [] if members is None else _client_ids(members)
    return _Sharing(made, group, client_ids, pins_must_say=pins_must_say)


def _with_pins(
    admin: Admin, strategy: AllocateMessageQueueStrategy, group: str, *, must_say: bool
) -> AllocateMessageQueueStrategy:
    """Give a strategy PINS the group's live pins; ``must_say``: its ``when_absent`` comes from them."""
    if not isinstance(strategy, AllocateByPins):
        return strategy
    pins = admin.fetch_pins(group).at(now())
    if must_say and pins.ips and pins.when_absent is None:
        raise ConfigError(
            f"the pins of group {group!r} do not say who consumes while no pinned member is there: give "
            "--option when_absent=nobody or when_absent=everybody, as its members do"
        )
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
    _refuse_twice("--members", client_ids)
    return client_ids


def _queues(topic: str, text: str) -> list[MessageQueue]:
    queues: list[MessageQueue] = []
    for part in text.split(","):
        broker_name, _, count = part.strip().rpartition(":")
        if not (broker_name and count.isascii() and count.isdigit() and int(count)):
            raise ConfigError(f"--queue-counts {text!r}: want BROKER:COUNT, e.g. broker-a:4,broker-b:4")
        queues += [MessageQueue(topic, broker_name, queue_id) for queue_id in range(int(count))]
    _refuse_twice("--queue-counts", [queue.broker_name for queue in queues if queue.queue_id == 0])
    return sorted(queues)


def _refuse_twice(option: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ConfigError(f"{option} has {name!r} {count} times: give it once")


def _print(before: Owners, after: Owners, *, members: Sequence[str], is_live: bool) -> None:
    columns = [Column("queue"), Column("then"), Column("change", style=warning)]
    rows: list[tuple[object, ...]] = []
    for queue, owners in after.items():
        change = "moves" if is_live and set(before[queue]) != set(owners) else ""
        rows.append((queue_name(queue), _names(before[queue]), _names(owners), change))
    if is_live:
        print_table([columns[0], Column("now", 1), *columns[1:]], rows)
    else:
        print_table(columns[:2], [(row[0], row[2]) for row in rows])
    counts = Counter(owner for owners in after.values() for owner in owners)
    for client_id in members:
        say(f"{client_id}: {counts[client_id]} of {number_of(len(after), 'queue')}")
    if is_live:
        moved = sum(set(before[queue]) != set(owners) for queue, owners in after.items())
        say(f"{number_of(moved, 'queue')} would move")


def _names(owners: Sequence[str]) -> str:
    return ", ".join(owners) or "nobody"


def _values(queue: MessageQueue, before: Owners, after: Owners) -> dict[str, object]:
    place = {"topic": queue.topic, "broker_name": queue.broker_name, "queue_id": queue.queue_id}
    return place | {"now": before[queue], "then": after[queue]}
