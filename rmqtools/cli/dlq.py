"""``rmqtools dlq``: messages of a group that failed too often (``%DLQ%group``) or wait (``%RETRY%group``)."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.table import Table

from rmqtools import Admin, ClientConfig, MessageQueue, Perm, Producer, ProducerConfig, QueueRange
from rmqtools.cli.connection import (
    Json,
    NameServer,
    Settings,
    add_row,
    client_config,
    out,
    print_json,
    say,
    warn,
)
from rmqtools.cli.dead_letters import Progress, as_row, replayed
from rmqtools.clock import as_time
from rmqtools.errors import (
    ConfigError,
    DataLossError,
    PermissionDeniedError,
    RocketMQError,
    TopicNotFoundError,
)
from rmqtools.model.message import MessageExt
from rmqtools.model.names import dlq_topic, retry_topic

_NOTED_EVERY = 100  # messages: so many are sent twice at the most when a replay is killed

app = typer.Typer(
    no_args_is_help=True,
    help="Messages of a group that failed too often (its dead letters), or wait for their next try.",
)

Group = Annotated[str, typer.Option("--group", "-g", help="The consumer group.", show_default=False)]
Retry = Annotated[
    bool, typer.Option("--retry", help="The messages waiting for their next try, not the dead.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many messages. Default: all.")]
MakeReadable = Annotated[
    bool,
    typer.Option(
        "--make-readable",
        help="If the topic may not be read (older brokers make it so), let it be read from now on.",
    ),
]


@app.command("list")
def list_(
    group: Group,
    name_server: NameServer = "",
    make_readable: MakeReadable = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Count a group's dead letters, and what waits for its next try, queue by queue."""
    rows: list[dict[str, object]] = []
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        for topic in (dlq_topic(group), retry_topic(group)):
            with suppress(TopicNotFoundError):
                rows += [_queue_row(admin, range_) for range_ in _ranges(admin, topic, make_readable)]
    if as_json:
        print_json(rows)
    elif not rows:
        say(f"group {group} has neither {dlq_topic(group)} nor {retry_topic(group)}: nothing ever failed")
    else:
        table = Table("topic", "broker", "queue", "messages", "first offset", "end", "latest")
        for row in rows:
            add_row(table, *row.values())
        out().print(table)


@app.command()
def export(
    group: Group,
    output: Annotated[Path, typer.Option("--output", "-f", dir_okay=False, help="The file to write.")],
    name_server: NameServer = "",
    retry: Retry = False,
    limit: Limit = None,
    make_readable: MakeReadable = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="The file may exist.")] = False,
    settings: Settings = None,
) -> None:
    """Write a group's dead letters to a file, a JSON object per line, bodies in base64. None is removed.

    What is there when the command starts is written, and exactly that. The file appears when it is whole.
    """
    topic = retry_topic(group) if retry else dlq_topic(group)
    if output.exists() and not overwrite:
        raise ConfigError(f"{output} exists: give another file, or --overwrite")
    count = 0
    with Admin(client_config(name_server, settings, ClientConfig)) as admin, _appearing(output) as file:
        ranges = _ranges(admin, topic, make_readable)
        for message in _messages(admin, ranges, limit):
            file.write(json.dumps(as_row(message), ensure_ascii=False) + "\n")
            count += 1
    _say_ranges(ranges)
    say(f"{count} messages of {topic} written to {output}")


@app.command()
def replay(
    group: Group,
    name_server: NameServer = "",
    to_topic: Annotated[
        str | None, typer.Option(help="Where to. Default: the topic each message was first sent to.")
    ] = None,
    progress: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            metavar="FILE",
            help="Note down here how far it is, and go on from there if the file exists: give the same file "
            "again after an interruption.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would go where, send nothing.")
    ] = False,
    retry: Retry = False,
    limit: Limit = None,
    make_readable: MakeReadable = False,
    settings: Settings = None,
) -> None:
    """Send a group's dead letters again: body, tags, keys, flag and the user's properties as they were.

    All groups of the topic get them, under new message ids, with their failures counted anew. The dead
    letters stay where they are, so a second replay sends them again: --progress FILE is what makes it go on
    instead. It ends at the first message that cannot be sent; where it is unknown whether one was stored, the
    next run sends that one again. A topic that was deleted and made anew needs another FILE.
    """
    topic = retry_topic(group) if retry else dlq_topic(group)
    done = Progress.load(progress, topic) if progress else Progress(topic)
    sent: Counter[str] = Counter()
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        ranges = still_to_send(done, _ranges(admin, topic, make_readable))
        config = client_config(name_server, settings, ProducerConfig)
        try:
            with Producer(config) as producer:
                for message in _messages(admin, ranges, limit):
                    fresh = replayed(message, to_topic, config.namespace)
                    if not dry_run:
                        producer.send(fresh)
                        done.note(message)
                    sent[fresh.topic] += 1
                    if progress and not dry_run and sent.total() % _NOTED_EVERY == 0:
                        done.persist(progress)
        finally:
            if progress and not dry_run:
                done.persist(progress)
            _say_sent(sent, topic, dry_run=dry_run)


def still_to_send(done: Progress, ranges: list[QueueRange]) -> list[QueueRange]:
    """What a replay has to send of all that the queues hold; a warning counts what is gone before its turn.

    Raises:
        ConfigError: a queue ends before what ``done`` notes of it.
    """
    for range_ in ranges:
        if count := done.count_expired(range_):
            place = f"{range_.queue.broker_name}:{range_.queue.queue_id}"
            lost = f"{count} messages of queue {place} of {done.topic}"
            warn(f"warning: {lost} expired before they were replayed")
    return [done.rest_of(range_) for range_ in ranges]


def _ranges(admin: Admin, topic: str, make_readable: bool) -> list[QueueRange]:
    """What every queue of a topic holds now.

    Raises:
        TopicNotFoundError: nothing ever failed.
        PermissionDeniedError: a broker forbids reading; nothing is left out in silence.
    """
    try:
        route = admin.fetch_route(topic)
    except TopicNotFoundError as error:
        raise TopicNotFoundError(f"there is no topic {topic}: no message of the group ever failed") from error
    unreadable = [data for data in route.queue_datas if not data.is_readable]
    for data in unreadable:
        if not make_readable:
            names = ", ".join(each.broker_name for each in unreadable)
            raise PermissionDeniedError(
                f"topic {topic!r} may not be read on {names} (perm {data.perm}): --make-readable changes "
                f"it to {int(data.perm | Perm.READ)}"
            )
        admin.create_topic(
            topic,
            read_queue_nums=max(data.read_queue_nums, data.write_queue_nums),
            write_queue_nums=data.write_queue_nums,
            perm=Perm(data.perm) | Perm.READ,
            broker_names=[data.broker_name],
        )
    queues = admin.fetch_subscribe_queues(topic)
    return [QueueRange(queue, admin.min_offset(queue), admin.max_offset(queue)) for queue in queues]


def _messages(admin: Admin, ranges: list[QueueRange], limit: int | None) -> Iterator[MessageExt]:
    left = limit
    for range_ in ranges:
        for messages in admin.read_messages(range_):
            for message in messages:
                if left == 0:
                    return
                left = None if left is None else left - 1
                yield message


def _queue_row(admin: Admin, range_: QueueRange) -> dict[str, object]:
    queue = range_.queue
    return {
        "topic": queue.topic,
        "broker_name": queue.broker_name,
        "queue_id": queue.queue_id,
        "messages": len(range_),
        "begin": range_.begin,
        "end": range_.end,
        "latest": _latest(admin, queue, range_.end) if len(range_) else None,
    }


def _latest(admin: Admin, queue: MessageQueue, end: int) -> str | None:
    """When the last message was stored; None where it has just expired."""
    with suppress(DataLossError):
        for messages in admin.read_messages(QueueRange(queue, end - 1, end)):
            return f"{as_time(messages[-1].store_timestamp_ms):%Y-%m-%d %H:%M:%S} UTC"
    return None


@contextmanager
def _appearing(path: Path) -> Iterator[IO[str]]:
    """A file that is there when it is whole, and not there when something went wrong."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise RocketMQError(f"{path} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def _say_ranges(ranges: list[QueueRange]) -> None:
    for range_ in ranges:
        place = f"{range_.queue.broker_name}[{range_.queue.queue_id}]"
        say(f"{place}: offsets {range_.begin} to {range_.end}, exclusive")


def _say_sent(sent: Counter[str], topic: str, *, dry_run: bool) -> None:
    """Also said when it was interrupted: somebody has to know how much was sent."""
    what = "would be sent" if dry_run else "sent"
    for to_topic, count in sorted(sent.items()):
        say(f"{count} messages of {topic} {what} to {to_topic}")
    if not sent:
        warn(f"no messages of {topic} {what}")
