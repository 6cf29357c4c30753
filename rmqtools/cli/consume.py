"""``rmqtools consume``: prints messages of a topic, without a group or as a member of one."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    ConsumeFromWhere,
    MessageExt,
    MessageQueue,
    PullConsumer,
    PullConsumerConfig,
    QueueRange,
)
from rmqtools.cli.connection import NameServer, Settings, broker_clock, client_config, complete_topic
from rmqtools.cli.moments import duration_option, moment_ms
from rmqtools.cli.output_messages import FORMAT_HELP
from rmqtools.cli.printing import Interrupted, ends_quietly
from rmqtools.cli.saving.command import command_sink
from rmqtools.cli.saving.sink import Sink, message_sink
from rmqtools.cli.selection import Limit, Sql, Tags
from rmqtools.cli.topic import known_route, named_queue
from rmqtools.errors import ConfigError

_LOOK_PAUSE = 0.2  # seconds between checks for new messages, without a group
_POLL_MESSAGES = 500

EARLIEST, LATEST = "earliest", "latest"


class Format(StrEnum):
    """Forms in which messages are printed."""

    text = "text"
    json = "json"
    hex = "hex"
    parquet = "parquet"


Form = Annotated[
    Format,
    typer.Option(
        "--format",
        help="Bodies, on a terminal with keys and tags; JSON lines; a hex dump; Parquet (extra arrow).",
    ),
]
Own = Annotated[
    str | None,
    typer.Option("--format-string", metavar="TEXT", help=f"A format of your own: {FORMAT_HELP}."),
]
Command = Annotated[
    str | None,
    typer.Option("--exec", metavar="COMMAND", help="Run this for each message, with its body as stdin."),
]
Raw = Annotated[bool, typer.Option("--raw", help="Print to a terminal unescaped, as to pipes and files.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to this file; default, and '-': standard output."
    ),
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Selection of a topic's messages; without a group."""

    topic: str
    begin: str | None
    until: str | None
    last: int | None
    queue: str | None
    tags: frozenset[str]
    sql: str | None
    follow: bool


def consume(
    topic: Annotated[
        str, typer.Argument(help="The topic to read.", show_default=False, autocompletion=complete_topic)
    ],
    name_server: NameServer = "",
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            metavar="GROUP",
            help="Read as a member of this group, and commit. Default: touch nothing.",
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="earliest|latest|OFFSET|TIME", help="Where to begin."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="OFFSET|TIME", help="Where to end, exclusive. Default: now.")
    ] = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only this many of the newest messages.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more, until Ctrl-C.")] = False,
    limit: Limit = None,
    queue: Annotated[str | None, typer.Option(metavar="BROKER:QUEUE", help="Only this queue.")] = None,
    tags: Tags = None,
    sql: Sql = None,
    form: Form = Format.text,
    output: Output = None,
    own: Own = None,
    idle: Annotated[
        float, duration_option("With --group, without --follow: end if nothing comes for so long.", least=0.1)
    ] = 3.0,
    raw: Raw = False,
    command: Command = None,
    settings: Settings = None,
) -> None:
    """Print a topic's messages: those that are there now, or all from now on with --follow.

    Without a group, nothing is committed and no member is affected; queues are read one after the other, with
    --follow and --last in the order of their store time. With a group, its other members share the queues,
    and printed messages count as consumed; a new group begins at --from earliest or latest.

        rmqtools consume orders --last 10 --format-string '%t %q %o %k %s\\n'

        rmqtools consume orders --from -1h --format parquet -o orders.parquet

    --exec replays messages to a program of yours, one after the other, until it fails. MESSAGE_TOPIC,
    _BROKER, _QUEUE, _OFFSET, _ID, _KEYS, _TAGS, _STORE_TIME_MS and _PROPERTIES (JSON) say what it gets.

        rmqtools consume orders --from -1h --exec './handle.py --dry-run'
    """
    with ends_quietly(), _sink(form.value, own, output, command, raw=raw) as write:
        if group is not None:
            given = {"--until": until, "--last": last, "--queue": queue, "--exec": command}
            _refuse_with_group(begin, given)
            config = client_config(name_server, settings, PullConsumerConfig, group=group, **_start(begin))
            _print_all(_of_group(config, topic, tags, sql, limit, None if follow else idle), write, None)
            return
        wanted = Wanted(topic, begin, until, last, queue, _tag_set(tags), sql, follow)
        with Client(client_config(name_server, settings, ClientConfig)) as client:
            _print_all(_without_group(client, wanted), write, limit)


def _sink(
    form: str, own: str | None, output: Path | None, command: str | None, *, raw: bool
) -> AbstractContextManager[Sink]:
    if command is not None:
        return nullcontext(command_sink(command, form, own, output))
    return message_sink(form, own, output, raw=raw)


def _tag_set(text: str | None) -> frozenset[str]:
    """Return ``a || b`` as a set; empty: all messages."""
    return frozenset(tag.strip() for tag in (text or "").split("||") if tag.strip() not in ("", "*"))


def _refuse_with_group(begin: str | None, given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConfigError(f"{name} is for reading without --group: a group goes on at its offsets")
    if begin not in (None, EARLIEST, LATEST):
        raise ConfigError(
            f"--from {begin}: with --group want earliest or latest, for a group without offsets; move one "
            "that has offsets with rmqtools group reset"
        )


def _start(begin: str | None) -> dict[str, str]:
    if begin is None:
        return {}
    where = {
        EARLIEST: ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        LATEST: ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    }
    return {"consume_from": where[begin].value}


def _print_all(batches: Iterator[list[MessageExt]], write: Sink, count: int | None) -> None:
    left = count
    with closing(batches):  # type: ignore[type-var]  # all of them are generators
        for messages in batches:
            shown = messages if left is None else messages[:left]
            write(shown)
            left = None if left is None else left - len(shown)
            if left == 0:
                return


def _of_group(
    config: PullConsumerConfig,
    topic: str,
    tags: str | None,
    sql: str | None,
    count: int | None,
    idle: float | None,
) -> Iterator[list[MessageExt]]:
    """Yield the messages of a group's member, until ``idle`` seconds have passed without a message."""
    left = count
    with PullConsumer(config) as consumer:
        consumer.subscribe(topic, tags=tags or "*", sql=sql)
        while left is None or left > 0:
            most = _POLL_MESSAGES if left is None else min(left, _POLL_MESSAGES)
            try:
                messages = consumer.poll(idle, max_messages=most)
            except Interrupted:
                consumer.commit()  # the printed messages; an exception alone would deliver them again
                raise
            if messages:
                yield messages
                left = None if left is None else left - len(messages)
            elif idle is not None:
                return


def _without_group(client: Client, wanted: Wanted) -> Iterator[list[MessageExt]]:
    """Yield the stored messages, queue by queue; then, to follow, new ones."""
    with Admin(client) as admin:
        known_route(admin, wanted.topic)
        queues = _queues(admin, wanted)
        ends = {queue: _end(admin, queue, wanted) for queue in queues}
        ranges = [QueueRange(queue, *_bounds(admin, queue, ends[queue], wanted)) for queue in queues]
        if wanted.last is not None:
            messages = [
                message for range_ in ranges for found in _read(client, range_, wanted) for message in found
            ]
            yield _by_time(messages)[-wanted.last :]
        else:
            for range_ in ranges:
                yield from _read(client, range_, wanted)
        while wanted.follow:
            Event().wait(_LOOK_PAUSE)
            fresh = {queue: admin.max_offset(queue) for queue in queues}
            news = [QueueRange(queue, ends[queue], end) for queue, end in fresh.items() if end > ends[queue]]
            found = [message for range_ in news for part in _read(client, range_, wanted) for message in part]
            ends |= fresh
            if found:
                yield _by_time(found)


def _read(client: Client, range_: QueueRange, wanted: Wanted) -> Iterator[list[MessageExt]]:
    """Read a range. Brokers compare hash codes of tags, so they are compared again here."""
    if not len(range_):
        return
    for messages in client.read_messages(range_, tags=wanted.tags, sql=wanted.sql, corrupt_body="raw"):
        kept = [message for message in messages if message.tags in wanted.tags] if wanted.tags else messages
        if kept:
            yield kept


def _by_time(messages: Sequence[MessageExt]) -> list[MessageExt]:
    return sorted(messages, key=lambda m: (m.store_timestamp_ms, m.broker_name, m.queue_id, m.queue_offset))


def _queues(admin: Admin, wanted: Wanted) -> list[MessageQueue]:
    queues = admin.fetch_subscribe_queues(wanted.topic)
    if wanted.queue is None:
        return queues
    return [named_queue("--queue", wanted.queue, queues)]


def _end(admin: Admin, queue: MessageQueue, wanted: Wanted) -> int:
    end = admin.max_offset(queue)
    if wanted.until is None:
        return end
    if wanted.follow:
        raise ConfigError(f"--until {wanted.until}: --follow never ends: leave one of them out")
    return min(end, _offset(admin, queue, "--until", wanted.until))


def _bounds(admin: Admin, queue: MessageQueue, end: int, wanted: Wanted) -> tuple[int, int]:
    first = admin.min_offset(queue)
    if wanted.last is not None:
        if wanted.begin is not None:
            raise ConfigError(f"--from {wanted.begin}: --last says where to begin: leave one of them out")
        return max(first, end - wanted.last), end
    begin = wanted.begin or (LATEST if wanted.follow else EARLIEST)
    places = {EARLIEST: first, LATEST: end}
    at = places[begin] if begin in places else _offset(admin, queue, "--from", begin)
    return min(max(first, at), end), end


def _offset(admin: Admin, queue: MessageQueue, option: str, text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    return admin.search_offset(queue, moment_ms(option, text, broker_clock(admin, queue.broker_name)))
