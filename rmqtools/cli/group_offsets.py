"""``rmqtools group reset`` and ``skip``: move the offsets of a group, and show what changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.cli.change import DryRun, Yes, agreed
from rmqtools.cli.connection import (
    Json,
    NameServer,
    Settings,
    broker_clock,
    client_config,
    complete_topic,
    partial_admin,
)
from rmqtools.cli.group import Group, require_group
from rmqtools.cli.moments import moment_ms
from rmqtools.cli.printing import Column, print_json, print_table, row_cells, say, time_text, warn, warning
from rmqtools.cli.topic import named_queue
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.model.queue import queue_name
from rmqtools.number_of import number_of

Offsets = dict[MessageQueue, int]
_LATER_MS = 24 * 3600 * 1000  # so much later than now, no message was stored: the end of a queue

Topic = Annotated[
    str,
    typer.Option(
        "--topic", "-t", metavar="TOPIC", help="The topic.", show_default=False, autocompletion=complete_topic
    ),
]


def reset(
    group: Group,
    topic: Topic,
    name_server: NameServer = "",
    to_time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="2026-01-31T12:00 in the zone of this machine, or with an offset; 30m ago: -30m.",
        ),
    ] = None,
    to_offset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OFFSET|BROKER:QUEUE=OFFSET",
            help="An offset of all queues or of one; several times. The group must have no members.",
        ),
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The first message there is.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Behind the last message.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Move a group's offsets of a topic. Shows each queue's offset before and after, and the difference.

    By time, brokers 5.x move the offsets also for running members; older brokers ask the members to do it.
    """
    given = [to_time is not None, bool(to_offset), to_earliest, to_latest]
    if sum(given) != 1:
        raise ConfigError("give one of --to-time, --to-offset, --to-earliest, --to-latest")
    with partial_admin(client_config(name_server, settings, ClientConfig), partial=dry_run) as admin:
        require_group(admin, group)
        before = admin.fetch_consumer_offsets(group, topic)
        if to_offset:
            after = _given_offsets(admin, list(before), to_offset)
            _check_no_members(admin, group)
        else:
            now_ms = broker_clock(admin)
            latest_ms = now_ms() + _LATER_MS if to_latest else 0
            at_ms = _past_ms(to_time, now_ms) if to_time is not None else latest_ms
            after = {queue: admin.search_offset(queue, at_ms) for queue in before}
        if not _agreed(
            f"Move {group} to these offsets of {topic}?", before, after, _Asked(dry_run, yes, as_json)
        ):
            return
        if to_offset:
            for queue, offset in after.items():
                admin.update_consumer_offset(group, queue, offset)
        else:
            admin.reset_offsets(group, topic, at_ms)
    if not as_json:
        say(f"group {group} is reset on {number_of(len(after), 'queue')} of {topic}")


def skip(
    group: Group,
    topic: Topic,
    name_server: NameServer = "",
    queue: Annotated[str | None, typer.Option(metavar="BROKER:QUEUE", help="Only in this queue.")] = None,
    offset: Annotated[
        int | None,
        typer.Option(min=0, help="With --queue: the message to skip, with all before it. Default: all."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Skip the messages of a topic that a group has not consumed yet: the same as reset --to-latest.

    With --queue only those of one queue; with --offset only up to that message, while the members go on
    (brokers 5.1 and newer). A message that always fails is skipped by its offset:

        rmqtools group skip billing -t orders --queue broker-a:0 --offset 41
    """
    if offset is not None and queue is None:
        raise ConfigError(
            f"--offset {offset}: give --queue BROKER:QUEUE too; each queue has offsets of its own"
        )
    if queue is not None:
        config = client_config(name_server, settings, ClientConfig)
        _skip_in_queue(config, group, (topic, queue), offset, _Asked(dry_run, yes, as_json))
        return
    reset(
        group,
        topic,
        name_server,
        to_latest=True,
        dry_run=dry_run,
        yes=yes,
        settings=settings,
        as_json=as_json,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Mode of a change: only shown, without a question, for programs."""

    dry_run: bool
    yes: bool
    as_json: bool


def _skip_in_queue(
    config: ClientConfig, group: str, place: tuple[str, str], offset: int | None, asked: _Asked
) -> None:
    """Skip messages of one queue, ``place``: its topic and name."""
    topic, name = place
    with partial_admin(config, partial=asked.dry_run) as admin:
        require_group(admin, group)
        before = admin.fetch_consumer_offsets(group, topic)
        queue = named_queue("--queue", name, list(before))
        after = admin.max_offset(queue) if offset is None else _behind(admin, queue, offset, before[queue])
        if _agreed(f"Move {group} to offset {after} of {topic} {name}?", before, {queue: after}, asked):
            admin.reset_queue_offset(group, queue, after)
            if not asked.as_json:
                say(f"group {group} goes on at offset {after} of {topic} {name}")


def _behind(admin: Admin, queue: MessageQueue, offset: int, now_at: int | None) -> int:
    """Return the offset behind a message that is to be skipped.

    Raises:
        ConfigError: the queue has no such message, or the group has consumed it.
    """
    begin, end = admin.min_offset(queue), admin.max_offset(queue)
    name = queue_name(queue)
    if begin == end:
        raise ConfigError(f"--offset {offset}: queue {name} has no messages")
    if not begin <= offset < end:
        raise ConfigError(f"--offset {offset}: queue {name} has offsets {begin} to {end - 1}")
    if now_at is not None and offset < now_at:
        raise ConfigError(f"--offset {offset}: the group is behind it already: it reads {name} from {now_at}")
    return offset + 1


def _agreed(question: str, before: Mapping[MessageQueue, int | None], after: Offsets, asked: _Asked) -> bool:
    """Show a change, and return whether to make it."""
    _show(before, after, as_json=asked.as_json)
    return agreed(question, yes=asked.yes, dry_run=asked.dry_run)


def _show(before: Mapping[MessageQueue, int | None], after: Offsets, *, as_json: bool) -> None:
    rows = [
        {
            "topic": queue.topic,
            "broker_name": queue.broker_name,
            "queue_id": queue.queue_id,
            "before": before[queue],
            "after": offset,
            "difference": None if (old := before[queue]) is None else offset - old,
        }
        for queue, offset in after.items()
    ]
    if as_json:
        print_json(rows)
        return
    columns = [Column("queue"), Column("before"), Column("after")]
    table = [row_cells(row)[1:] for row in rows]
    print_table([*columns, Column("difference", style=warning)], table)


def _given_offsets(admin: Admin, queues: list[MessageQueue], texts: list[str]) -> Offsets:
    """Return the offsets of --to-offset, each within its queue's range.

    Raises:
        ConfigError: another form, an unknown queue, or an offset that the queue does not have.
    """
    by_name = {queue_name(queue): queue for queue in queues}
    after: Offsets = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not (number.isascii() and number.isdigit()) or (equals and name not in by_name):
            known = ", ".join(by_name)
            raise ConfigError(f"--to-offset {text!r}: want OFFSET or BROKER:QUEUE=OFFSET (queues: {known})")
        after |= dict.fromkeys([by_name[name]] if equals else queues, int(number))
    for queue, offset in after.items():
        begin, end = admin.min_offset(queue), admin.max_offset(queue)
        if not begin <= offset <= end:
            raise ConfigError(f"--to-offset {offset}: queue {queue_name(queue)} has offsets {begin} to {end}")
    return after


def _check_no_members(admin: Admin, group: str) -> None:
    if ids := admin.fetch_consumer_ids(group):
        raise RocketMQError(
            f"group {group!r} has {number_of(len(ids), 'member')}, and members overwrite offsets that are "
            f"set one by one: stop them ({', '.join(ids)}), or reset by --to-time, or skip by "
            "rmqtools group skip --queue"
        )


def _past_ms(text: str, now_ms: Callable[[], int]) -> int:
    """Return the moment of --to-time, after printing how it was understood.

    Raises:
        ConfigError: it is no moment, or one to come.
    """
    at_ms = moment_ms("--to-time", text, now_ms)
    if at_ms > now_ms():
        raise ConfigError(
            f"--to-time {text!r} is {time_text(at_ms)}, which is yet to come: give --to-latest to skip all"
        )
    warn(f"to the first messages stored at or after {time_text(at_ms)}")
    return at_ms
