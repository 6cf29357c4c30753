"""``rmqtools topic``: lists, describes, creates, changes and deletes topics."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Annotated, Any

import typer

from rmqtools import Admin, ClientConfig, MessageQueue, Perm, QueueData, TopicMessageType, TopicRouteData
from rmqtools.cli.change import DryRun, Yes, agreed
from rmqtools.cli.connection import (
    Json,
    NameServer,
    Settings,
    broker_now_ms,
    client_config,
    complete_topic,
    partial_admin,
)
from rmqtools.cli.moments import duration_option
from rmqtools.cli.pairs import pairs
from rmqtools.cli.printing import Column, finding, print_json, print_table, row_cells, say, time_text, warn
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError, RocketMQError, TopicNotFoundError
from rmqtools.model.group import TopicOffset
from rmqtools.model.names import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX, is_system_topic
from rmqtools.model.queue import queue_name
from rmqtools.model.route import TopicConfig
from rmqtools.model.staged import OWN_TOPIC_PREFIX
from rmqtools.number_of import number_of
from rmqtools.unknown_name import unknown_name

_AT_ONCE = 16  # topics asked about at the same time
_OWN_RETENTION = "reserve.time"  # hours; an attribute of topics
_TIERED = "TieredMessageStore"  # a plug-in of brokers
_HOUR_MS = 3_600_000
_HOT = 3  # times as many messages in an hour as the other queues of the topic have on average
_FEW = 100  # messages of an hour; below that, their numbers say nothing
_OWN_SUFFIX = "_REPLY_TOPIC"  # each cluster has one for replies to requests

app = typer.Typer(no_args_is_help=True, help="Topics: list, describe, create, alter, delete; producers.")


class Access(StrEnum):
    """Permissions of clients on a topic."""

    rw = "rw"
    r = "r"
    w = "w"


_PERMS = {Access.rw: Perm.READ | Perm.WRITE, Access.r: Perm.READ, Access.w: Perm.WRITE}

Topic = Annotated[str, typer.Argument(help="The topic.", show_default=False, autocompletion=complete_topic)]
Brokers = Annotated[
    list[str] | None, typer.Option("--broker", metavar="BROKER", help="Only on this broker; several times.")
]
Cluster = Annotated[str | None, typer.Option("--cluster", metavar="NAME", help="Only in this cluster.")]
MessageType = Annotated[
    TopicMessageType | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="NORMAL, FIFO, DELAY, TRANSACTION or MIXED: proxies 5.x refuse messages of other types.",
    ),
]
Attributes = Annotated[
    list[str] | None,
    typer.Option("--attribute", metavar="NAME=VALUE", help="E.g. cleanup.policy=COMPACTION; several times."),
]


@app.command("list")
def list_(
    name_server: NameServer = "",
    stats: Annotated[
        bool, typer.Option("--stats", help="Ask the brokers too: messages, rate, last time.")
    ] = False,
    idle: Annotated[
        float | None, duration_option("Only topics without a message since then; with their statistics.")
    ] = None,
    system: Annotated[
        bool, typer.Option("--system", help="Show RocketMQ's own topics, and those of retries, too.")
    ] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List all topics: brokers, queues, permission; with --stats messages, rate and time of the last one."""
    stats = stats or idle is not None
    before_ms = None if idle is None else SYSTEM_CLOCK.now_ms() - int(idle * 1000)
    with partial_admin(client_config(name_server, settings, ClientConfig)) as admin:
        names = admin.fetch_topic_list() if system else user_topics(admin)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = pool.map(lambda name: _summary(admin, name, stats=stats, before_ms=before_ms), names)
            rows = [row for row in found if row is not None]
        if as_json:
            print_json(rows)
            return
        columns = [Column("topic"), Column("brokers", 2), Column("read queues", 1), Column("write queues", 1)]
        columns.append(Column("perm", 3))
        if stats:
            columns += [Column("messages"), Column("rate/s", 4), Column("last message", 5)]
        print_table(columns, [tuple(row.values()) for row in rows])


@app.command()
def describe(
    topic: Topic, name_server: NameServer = "", settings: Settings = None, as_json: Json = False
) -> None:
    """Show a topic's settings, and the offsets of each queue. Marks queues that cannot be used.

    "messages" is the last offset less the first: brokers delete whole files, so it shrinks in steps. A queue
    is marked as hot if in the last hour it got more than three times as many as the others on average.
    """
    with partial_admin(client_config(name_server, settings, ClientConfig)) as admin:
        described = _described(admin, topic)
        if as_json:
            print_json(described)
            return
        for name in ("topic", "message_type", "attributes", "retention", "put_tps", "groups"):
            say(f"{name.replace('_', ' ') + ':':<14}{_line(described[name])}")
        columns = [Column("queue"), Column("perm", 3), Column("first", 2), Column("end", 1)]
        columns += [Column("messages"), Column("last hour"), Column("last message", 4)]
        columns.append(Column("note", style=finding))
        print_table(columns, [row_cells(row) for row in described["queues"]])


@app.command()
def create(
    topic: Topic,
    name_server: NameServer = "",
    queues: Annotated[int, typer.Option("--queues", "-q", min=1, help="Queues on each broker.")] = 8,
    perm: Annotated[Access, typer.Option(help="Permission of clients.")] = Access.rw,
    type_: MessageType = None,
    attributes: Attributes = None,
    brokers: Brokers = None,
    cluster: Cluster = None,
    settings: Settings = None,
) -> None:
    """Create a topic on all masters, or on some. An existing one is an error: see alter."""
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        if topic in admin.fetch_topic_list():
            raise RocketMQError(f"topic {topic!r} exists: change it with rmqtools topic alter {topic}")
        admin.create_topic(
            topic,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=_PERMS[perm],
            cluster_name=cluster,
            broker_names=brokers,
            message_type=type_,
            attributes=pairs(attributes),
        )
        names = [data.broker_name for data in admin.fetch_route(topic).queue_datas]
    say(f"topic {topic} is created: {number_of(queues, 'queue')} on each of {', '.join(sorted(names))}")


@app.command()
def alter(
    topic: Topic,
    name_server: NameServer = "",
    queues: Annotated[int | None, typer.Option("--queues", "-q", min=1, help="Both of the next two.")] = None,
    read_queues: Annotated[int | None, typer.Option(min=1, help="Queues that clients read.")] = None,
    write_queues: Annotated[int | None, typer.Option(min=1, help="Queues that clients send to.")] = None,
    perm: Annotated[Access | None, typer.Option(help="Permission of clients.")] = None,
    type_: MessageType = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="NAME=VALUE", help="NAME= removes it; several times."),
    ] = None,
    brokers: Brokers = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
) -> None:
    """Change a topic, broker by broker; settings not given stay as they are.

    To take queues away, lower --write-queues first, and --read-queues when their messages are consumed.
    """
    wanted = (read_queues or queues, write_queues or queues, None if perm is None else _PERMS[perm])
    changed = {name: value or None for name, value in pairs(attributes).items()}
    if not any((*wanted, type_, changed)):
        raise ConfigError("nothing to change: give --queues, --perm, --type or --attribute")
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        chosen = _chosen(known_route(admin, topic), brokers)
        for data in chosen:
            after = _altered(data, *wanted)
            say(f"{data.broker_name}: {_settings_text(data)} -> {_settings_text(after)}")
            if after.write_queue_nums > after.read_queue_nums:
                raise ConfigError(
                    f"{after.write_queue_nums} write queues and {after.read_queue_nums} read queues: nobody "
                    "would read some of them; give --read-queues too"
                )
        _say_attributes(admin, topic, [data.broker_name for data in chosen], type_, changed)
        if dry_run:
            return
        for data in chosen:
            after = _altered(data, *wanted)
            admin.create_topic(
                topic,
                read_queue_nums=after.read_queue_nums,
                write_queue_nums=after.write_queue_nums,
                perm=Perm(after.perm),
                broker_names=[data.broker_name],
                message_type=type_,
                attributes=changed,
            )
    say(f"topic {topic} is changed")


def _say_attributes(
    admin: Admin, topic: str, brokers: Sequence[str], type_: str | None, changed: Mapping[str, str | None]
) -> None:
    """Print what becomes of the message type and the attributes, before they are changed."""
    if not type_ and not changed:
        return
    configs = admin.fetch_topic_configs(topic)
    for name in brokers:
        config = configs[name]
        before = {"message type": config.message_type} if type_ else {}
        before |= {each: (config.attributes or {}).get(each, "-") for each in changed}
        after = {"message type": type_, **changed}
        for each, value in before.items():
            say(f"{name}: {each} {value} -> {after[each] or '-'}")


@app.command()
def delete(
    topic: Topic,
    name_server: NameServer = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    cluster: Cluster = None,
    settings: Settings = None,
) -> None:
    """Delete a topic with all its messages, and the offsets of its groups, on brokers and name servers."""
    if is_system_topic(topic):
        raise ConfigError(f"topic {topic!r} is RocketMQ's own: brokers need it")
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        known_route(admin, topic)
        try:
            table = list(admin.fetch_topic_stats(topic).offset_table.values())
            groups = admin.fetch_topic_groups(topic)
        except TopicNotFoundError:  # a route that brokers have forgotten
            table, groups = [], []
        count = sum(offsets.max_offset - offsets.min_offset for offsets in table)
        readers = f", read by {', '.join(groups)}" if groups else ""
        question = f"Delete topic {topic} with about {number_of(count, 'message')}{readers}?"
        if not agreed(question, yes=yes, dry_run=dry_run):
            return
        admin.delete_topic(topic, cluster_name=cluster)
    say(f"topic {topic} is deleted")


def is_internal(topic: str) -> bool:
    """Return whether a topic is not a user's: RocketMQ's own, or one of retries and dead letters."""
    prefixes = (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)
    return (
        is_system_topic(topic)
        or topic.startswith((*prefixes, OWN_TOPIC_PREFIX))
        or topic.endswith(_OWN_SUFFIX)
    )


def is_usable(topic: str) -> bool:
    """Return whether a request can have this name: a server's JSON can have others."""
    return not any("\ud800" <= char <= "\udfff" for char in topic)


def user_topics(admin: Admin) -> list[str]:
    """Return the topics that users made: neither internal ones nor those named like a broker or a cluster."""
    own = admin.fetch_cluster_info().own_topics
    return [name for name in admin.fetch_topic_list() if name not in own and not is_internal(name)]


def known_route(admin: Admin, topic: str) -> TopicRouteData:
    """Return a topic's route.

    Raises:
        TopicNotFoundError: it does not exist; the text names a topic with a similar name.
    """
    try:
        return admin.fetch_route(topic)
    except TopicNotFoundError as error:
        raise TopicNotFoundError(unknown_name("topic", topic, user_topics(admin))) from error


def named_queue(option: str, name: str, queues: list[MessageQueue]) -> MessageQueue:
    """Return the queue that is named ``BROKER:QUEUE``.

    Raises:
        ConfigError: it is none of the topic's.
    """
    by_name = {queue_name(queue): queue for queue in queues}
    if name not in by_name:
        raise ConfigError(f"{option} {name!r}: topic {queues[0].topic!r} has only {', '.join(by_name)}")
    return by_name[name]


def _summary(admin: Admin, topic: str, *, stats: bool, before_ms: int | None) -> dict[str, Any] | None:
    """One row of ``list``; None: it has a message since then, or was deleted, or its brokers are down."""
    if not is_usable(topic):
        empty = dict.fromkeys(("brokers", "read_queues", "write_queues"))
        figures = dict.fromkeys(("messages", "put_tps", "last_message")) if stats else {}
        return {"topic": topic, **empty, "perm": "unusable: the name is not valid Unicode", **figures}
    try:
        route = admin.fetch_route(topic)
        found = admin.fetch_topic_stats(topic) if stats else None
    except TopicNotFoundError as error:
        warn(f"warning: {error}")
        return None
    row: dict[str, Any] = {
        "topic": topic,
        "brokers": sorted(data.broker_name for data in route.queue_datas),
        "read_queues": sum(data.read_queue_nums for data in route.queue_datas),
        "write_queues": sum(data.write_queue_nums for data in route.queue_datas),
        "perm": ", ".join(sorted({perm_text(data.perm) for data in route.queue_datas})),
    }
    if found is not None:
        offsets = found.offset_table.values()
        row["messages"] = sum(each.max_offset - each.min_offset for each in offsets)
        row["put_tps"] = found.topic_put_tps
        last_ms = max((each.last_update_timestamp for each in offsets), default=0)
        if before_ms is not None and last_ms >= before_ms:
            return None
        row["last_message"] = time_text(last_ms)
    return row


def _described(admin: Admin, topic: str) -> dict[str, Any]:
    route = known_route(admin, topic)
    configs, stats = admin.fetch_topic_configs(topic), admin.fetch_topic_stats(topic)
    masters = {data.broker_name: data.broker_addrs.get(0) for data in route.broker_datas}
    answer = {name: addr for name, addr in masters.items() if addr and name not in admin.missing_brokers}
    brokers = {name: admin.fetch_broker_config(addr) for name, addr in answer.items()}
    offsets = stats.offset_table
    lately = _last_hour(admin, [queue for queue in offsets if queue.broker_name in answer], offsets)
    return {
        "topic": topic,
        "message_type": sorted({config.message_type for config in configs.values()}),
        "attributes": sorted(
            {f"{k}={v}" for config in configs.values() for k, v in (config.attributes or {}).items()}
        ),
        "retention": sorted({_retention(configs.get(name), broker) for name, broker in brokers.items()}),
        "put_tps": stats.topic_put_tps,
        "groups": admin.fetch_topic_groups(topic),
        "queues": [
            _queue_row(MessageQueue(topic, data.broker_name, queue_id), data, masters, offsets, lately)
            for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
            for queue_id in range(max(data.read_queue_nums, data.write_queue_nums))
        ],
    }


def _retention(config: TopicConfig | None, broker: Mapping[str, str]) -> str:
    """Return how long a broker keeps a topic's messages.

    Source of the rule: only TieredMessageStore reads the topic's own time. Other brokers (5.5.0) store the
    attribute, and delete by fileReservedTime.
    """
    hours = f"{broker.get('fileReservedTime', '?')} hours"
    own = (config.attributes or {}).get(_OWN_RETENTION) if config is not None else None
    if own is None or int(own) < 0:
        return hours
    if _TIERED in broker.get("messageStorePlugIn", ""):
        return f"{own} hours in tiered storage, {hours} on the broker's disk"
    return f"{hours} ({_OWN_RETENTION}={own} has no effect: the broker has no tiered storage)"


def _last_hour(
    admin: Admin, queues: Sequence[MessageQueue], offsets: Mapping[MessageQueue, TopicOffset]
) -> dict[MessageQueue, int]:
    """Return how many messages queues got in the last hour of their brokers' clocks."""
    clocks = admin.fetch_clocks()
    begins = {queue: broker_now_ms(clocks, queue.broker_name) - _HOUR_MS for queue in queues}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda queue: admin.search_offset(queue, begins[queue]), queues)
        begun = zip(queues, found, strict=True)
        return {queue: max(0, offsets[queue].max_offset - begin) for queue, begin in begun}


def _queue_row(
    queue: MessageQueue,
    data: QueueData,
    masters: Mapping[str, str | None],
    offsets: Mapping[MessageQueue, TopicOffset],
    lately: Mapping[MessageQueue, int],
) -> dict[str, Any]:
    known, count = offsets.get(queue), lately.get(queue)
    notes = _notes(data, queue.queue_id, has_master=bool(masters.get(queue.broker_name)))
    if count is not None and _is_hot(count, sum(lately.values()) - count, len(lately) - 1):
        notes.append(f"hot: {100 * count / sum(lately.values()):.0f} % of the last hour")
    return {
        "broker_name": queue.broker_name,
        "queue_id": queue.queue_id,
        "perm": perm_text(data.perm),
        "min_offset": known.min_offset if known else None,
        "max_offset": known.max_offset if known else None,
        "messages": known.max_offset - known.min_offset if known else None,
        "last_hour": count,
        "last_message": time_text(known.last_update_timestamp) if known else None,
        "note": ", ".join(notes),
    }


def _is_hot(count: int, of_others: int, others: int) -> bool:
    """Return whether a queue got far more messages than the other queues of its topic."""
    return others > 0 and count >= _FEW and count * others > _HOT * of_others


def _notes(data: QueueData, queue_id: int, *, has_master: bool) -> list[str]:
    """Say why a queue cannot be used as others are."""
    notes = [] if has_master else ["no master"]
    if not data.is_writable or queue_id >= data.write_queue_nums:
        notes.append("not writable")
    if not data.is_readable or queue_id >= data.read_queue_nums:
        notes.append("not readable")
    return notes


def _chosen(route: TopicRouteData, brokers: Sequence[str] | None) -> list[QueueData]:
    by_name = {
        data.broker_name: data for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
    }
    for name in brokers or ():
        if name not in by_name:
            raise ConfigError(unknown_name("broker of this topic", name, list(by_name)))
    return [data for name, data in by_name.items() if not brokers or name in brokers]


def _altered(data: QueueData, read: int | None, write: int | None, perm: Perm | None) -> QueueData:
    return QueueData(
        data.broker_name,
        read or data.read_queue_nums,
        write or data.write_queue_nums,
        data.perm if perm is None else int(perm),
    )


def _settings_text(data: QueueData) -> str:
    return f"{data.read_queue_nums} read, {data.write_queue_nums} write queues, {perm_text(data.perm)}"


def perm_text(perm: int) -> str:
    """``rw``, ``r``, ``w`` or ``none``."""
    return ("r" if perm & Perm.READ else "") + ("w" if perm & Perm.WRITE else "") or "none"


def _line(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return f"{value:.1f}/s" if isinstance(value, float) else str(value)
