"""``rmqtools dlq``: dead letters of a group (``%DLQ%group``), and its messages that wait for a retry."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import filterfalse, islice
from pathlib import Path
from typing import IO, Annotated

import typer

from rmqtools import Admin, ClientConfig, MessageQueue, Perm, Producer, ProducerConfig, QueueRange
from rmqtools.cli.change import DryRun, Yes
from rmqtools.cli.connection import Json, NameServer, Settings, client_config, partial_admin
from rmqtools.cli.dead_letter_choice import Key, Where, choice_of
from rmqtools.cli.dead_letters import Progress, ProgressFile, as_row, default_progress, replayed
from rmqtools.cli.pace import Pace, Rate
from rmqtools.cli.printing import (
    Column,
    ends_quietly,
    print_json,
    print_table,
    row_cells,
    say,
    time_text,
    warn,
    warning,
)
from rmqtools.cli.saving.progress import progress_bar
from rmqtools.cli.selection import Limit
from rmqtools.errors import (
    ConfigError,
    PermissionDeniedError,
    RemotingError,
    RocketMQError,
    TopicNotFoundError,
)
from rmqtools.model.block import CorruptBody
from rmqtools.model.copy_message import origin_topic
from rmqtools.model.group import TopicOffset
from rmqtools.model.message import MessageExt
from rmqtools.model.names import dlq_topic, retry_topic
from rmqtools.model.queue import queue_name
from rmqtools.number_of import number_of
from rmqtools.safe_file import open_new
from rmqtools.visible_text import visible_json

_SHOWN_BYTES = 40  # of a body in a table
_NOTED_EVERY = 100  # messages: at most this many are sent twice when a replay is killed

app = typer.Typer(
    no_args_is_help=True,
    help="Messages of a group that failed too often (its dead letters), or wait for their next try.",
)

Group = Annotated[
    str, typer.Option("--group", "-g", metavar="GROUP", help="The consumer group.", show_default=False)
]
Retry = Annotated[
    bool, typer.Option("--retry", help="Messages that wait for a retry, instead of dead letters.")
]
MakeReadable = Annotated[
    bool,
    typer.Option(
        "--make-readable",
        help="If the topic may not be read (older brokers make it so), let it be read from now on.",
    ),
]

NotedIn = Annotated[
    Path | None,
    typer.Option(
        dir_okay=False,
        metavar="FILE",
        help="File of the progress: it is written, and the replay continues from it. Default: a file in "
        "~/.local/state/rmqtools/replay for this topic, target and cluster.",
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
    """Count a group's dead letters, and the messages waiting for a retry, per queue."""
    rows: list[dict[str, object]] = []
    with partial_admin(client_config(name_server, settings, ClientConfig)) as admin:
        for topic in (dlq_topic(group), retry_topic(group)):
            with suppress(TopicNotFoundError):
                queues = _queues(admin, topic, make_readable)
                known = admin.fetch_topic_stats(topic).offset_table
                rows += [_queue_row(queue, known[queue]) for queue in queues if queue in known]
        if as_json:
            print_json(rows)
        elif rows:
            columns = [Column("topic"), Column("queue"), Column("messages", style=warning)]
            columns += [Column("first offset", 2), Column("end", 3), Column("latest", 1)]
            print_table(columns, [row_cells(row) for row in rows])
        elif not admin.missing_brokers:
            say(f"group {group} has neither {dlq_topic(group)} nor {retry_topic(group)}: nothing ever failed")


@app.command()
def browse(
    group: Group,
    name_server: NameServer = "",
    key: Key = None,
    where: Where = None,
    retry: Retry = False,
    limit: Annotated[
        int, typer.Option(min=1, help="At most this many messages, oldest of a queue first.")
    ] = 20,
    make_readable: MakeReadable = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a group's dead letters: place, time, where they came from, keys, tags and their bodies' beginning.

    With --json all of each message. `replay` takes the same --key and --where.
    """
    topic, choice = retry_topic(group) if retry else dlq_topic(group), choice_of(key, where)
    with partial_admin(client_config(name_server, settings, ClientConfig)) as admin:
        ranges = _ranges(admin, topic, make_readable)
        found = list(islice(filter(choice.fits, _messages(admin, ranges, corrupt_body="raw")), limit))
        if as_json:
            print_json([as_row(message) for message in found])
            return
        columns = [Column("queue"), Column("offset"), Column("stored", 3), Column("from", 4)]
        columns += [Column("keys"), Column("tags", 2), Column("retries", 1), Column("body")]
        print_table(columns, [_letter(message) for message in found])
        if not found and not admin.missing_brokers:
            warn(f"{topic} has no {'such ' if not choice.is_all else ''}messages")


def _letter(message: MessageExt) -> tuple[object, ...]:
    body = message.body[:_SHOWN_BYTES].decode(errors="replace")
    return (
        queue_name(message),
        message.queue_offset,
        time_text(message.store_timestamp_ms),
        origin_topic(message),
        message.keys,
        message.tags,
        message.reconsume_times,
        f"{body} ..." if len(message.body) > _SHOWN_BYTES else body,
    )


@app.command()
def export(
    group: Group,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", dir_okay=False, help="The file to write; '-': stdout."
        ),
    ],
    name_server: NameServer = "",
    retry: Retry = False,
    limit: Limit = None,
    make_readable: MakeReadable = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    settings: Settings = None,
) -> None:
    """Write a group's dead letters to a file: a JSON object per line, bodies in base64. Removes none.

    Writes exactly the messages that exist when the command starts. The file appears when it is complete.
    "produce --format json" sends such a file; replay sends the messages without one.
    """
    topic = retry_topic(group) if retry else dlq_topic(group)
    to_stdout = str(output) == "-"
    if not to_stdout and output.exists() and not overwrite:
        raise ConfigError(f"{output} exists: give another file, or --overwrite")
    count, written = 0, nullcontext(sys.stdout) if to_stdout else _appearing(output)
    with ends_quietly(), Admin(client_config(name_server, settings, ClientConfig)) as admin, written as file:
        ranges = _ranges(admin, topic, make_readable)
        with progress_bar(f"writing {topic}", _total(ranges, limit), hidden=to_stdout) as advance:
            for message in islice(_messages(admin, ranges, corrupt_body="raw"), limit):
                file.write(visible_json(json.dumps(as_row(message), ensure_ascii=False)) + "\n")
                count += 1
                advance()
    if not to_stdout:
        _say_ranges(ranges)
        say(f"{number_of(count, 'message')} of {topic} written to {output}")


@app.command()
def replay(
    group: Group,
    name_server: NameServer = "",
    to_topic: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", help="The topic to send to. Default: where each was first sent."),
    ] = None,
    progress: NotedIn = None,
    no_progress: Annotated[
        bool, typer.Option("--no-progress", help="Send all of them, and store no progress.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    key: Key = None,
    where: Where = None,
    rate: Rate = None,
    retry: Retry = False,
    limit: Limit = None,
    make_readable: MakeReadable = False,
    settings: Settings = None,
) -> None:
    """Send a group's dead letters again, with unchanged body, tags, keys, flag and user properties.

    All groups of the topic get them, with new message ids and no failures counted. The dead letters are
    kept; a second replay continues where the first ended, and sends what has failed since. With
    --no-progress it sends all of them again. The command stops at the first message that cannot be sent. If
    it is unknown whether a message was stored, the next run sends it again. A topic that was deleted and
    created again needs another FILE.

    With --key or --where only some are sent; a later replay of all leaves these out.

    A message whose body cannot be read is not sent: its offset is printed, the others are sent, and the
    command ends with an error. `export` writes such a message with its body as it is stored.
    """
    topic = retry_topic(group) if retry else dlq_topic(group)
    config = client_config(name_server, settings, ProducerConfig)
    choice = choice_of(key, where)
    default = default_progress(topic, config.name_server, config.namespace, to_topic)
    file = _progress_file(progress, default, no_progress=no_progress)
    sent: Counter[str] = Counter()
    unreadable: list[MessageExt] = []
    with (
        nullcontext() if no_progress or dry_run else ProgressFile(file) as noted,
        Admin(client_config(name_server, settings, ClientConfig)) as admin,
    ):
        done = Progress(topic) if no_progress else Progress.load(file, topic)
        _say_continued(file, done)
        note = done.note if choice.is_all else done.note_single
        ranges = still_to_send(done, _ranges(admin, topic, make_readable))
        letters = filter(choice.fits, _messages(admin, ranges, corrupt_body="null"))
        found = _readable(islice(filterfalse(done.has_sent, letters), limit), unreadable, note)
        shown = progress_bar(f"replaying {topic}", _total(ranges, limit))
        with _noting(done, noted, sent, dry_run=dry_run), Producer(config) as producer, shown as advance:
            for message in found if dry_run else paced(found, rate):
                fresh = replayed(message, to_topic, config.namespace)
                if not dry_run:
                    producer.send(fresh)
                    note(message)
                sent[fresh.topic] += 1
                advance()
                if noted is not None and sent.total() % _NOTED_EVERY == 0:
                    noted.write(done)
    _check_all_sent(sent, unreadable, topic, dry_run=dry_run)


@contextmanager
def _noting(
    done: Progress, noted: ProgressFile | None, sent: Counter[str], *, dry_run: bool
) -> Iterator[None]:
    """Note the progress and say what was sent, however the block ends."""
    ended = False
    try:
        yield
        ended = True
    finally:
        if noted is not None:
            noted.write(done)
        _say_sent(sent, done.topic, dry_run=dry_run)
        if sent and not ended and noted is None and not dry_run:
            warn(f"not all of {done.topic}: the next run sends these {sent.total()} again (--no-progress)")


def _progress_file(asked: Path | None, default: Path, *, no_progress: bool) -> Path:
    if asked is not None and no_progress:
        raise ConfigError(f"--progress {asked} and --no-progress contradict each other: give one of them")
    return asked or default


def _say_continued(file: Path, done: Progress) -> None:
    if done.next_offsets:
        warn(f"continues where {file} says that the last replay ended; --no-progress sends all again")


def _check_all_sent(sent: Counter[str], unreadable: list[MessageExt], topic: str, *, dry_run: bool) -> None:
    """Say if nothing was sent; raise a RocketMQError for messages that could not be read."""
    if not sent:
        warn(f"no messages of {topic} {'would be sent' if dry_run else 'sent'}")
    if unreadable:
        raise RocketMQError(
            f"{number_of(len(unreadable), 'message')} of {topic} not sent because bodies cannot be read: "
            "rmqtools dlq export writes them with their bodies as they are stored"
        )


def _total(ranges: list[QueueRange], limit: int | None) -> int:
    total = sum(map(len, ranges))
    return total if limit is None else min(limit, total)


def _readable(
    messages: Iterator[MessageExt], unreadable: list[MessageExt], note: Callable[[MessageExt], None]
) -> Iterator[MessageExt]:
    """Yield messages whose bodies can be read; name the others, collect them, and note them as done."""
    for message in messages:
        if message.body_error is None:
            yield message
        else:
            warn(f"warning: not sent: {message.body_error}")
            unreadable.append(message)
            note(message)


def still_to_send(done: Progress, ranges: list[QueueRange]) -> list[QueueRange]:
    """Return the ranges that a replay still has to send. Warns about messages that expired before.

    Raises:
        ConfigError: a queue ends before the offset that ``done`` has noted.
    """
    for range_ in ranges:
        if count := done.count_expired(range_):
            lost = f"{number_of(count, 'message')} of queue {queue_name(range_.queue)} of {done.topic}"
            warn(f"warning: {lost} expired before they were replayed")
    return [done.rest_of(range_) for range_ in ranges]


def _ranges(admin: Admin, topic: str, make_readable: bool) -> list[QueueRange]:
    """Return the full range of every queue of a topic; see :func:`_queues`."""
    queues = _queues(admin, topic, make_readable)
    try:
        return [QueueRange(queue, admin.min_offset(queue), admin.max_offset(queue)) for queue in queues]
    except RemotingError:  # a partial admin knows which broker is missing; proxies serve no statistics
        known = admin.fetch_topic_stats(topic).offset_table
        found = [(queue, known[queue]) for queue in queues if queue in known]
        return [QueueRange(queue, offsets.min_offset, offsets.max_offset) for queue, offsets in found]


def _queues(admin: Admin, topic: str, make_readable: bool) -> list[MessageQueue]:
    """Return the queues of a topic of failed messages.

    Raises:
        TopicNotFoundError: no message has ever failed.
        PermissionDeniedError: a broker forbids reading the topic.
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
    return admin.fetch_subscribe_queues(topic)


def _messages(admin: Admin, ranges: list[QueueRange], *, corrupt_body: CorruptBody) -> Iterator[MessageExt]:
    for range_ in ranges:
        for messages in admin.read_messages(range_, corrupt_body=corrupt_body):
            yield from messages


def paced(messages: Iterable[MessageExt], rate: float | None) -> Iterator[MessageExt]:
    """Yield at most ``rate`` messages a second; None: without a bound."""
    pace = Pace(rate)
    for count, message in enumerate(messages):
        pace.wait(count)
        yield message


def _queue_row(queue: MessageQueue, offsets: TopicOffset) -> dict[str, object]:
    count = offsets.max_offset - offsets.min_offset
    return {
        "topic": queue.topic,
        "broker_name": queue.broker_name,
        "queue_id": queue.queue_id,
        "messages": count,
        "begin": offsets.min_offset,
        "end": offsets.max_offset,
        "latest": time_text(offsets.last_update_timestamp) if count else None,
    }


@contextmanager
def _appearing(path: Path) -> Iterator[IO[str]]:
    """Write a file that appears only if the block ends without an error."""
    part = path.with_name(path.name + ".part")
    try:
        with open_new(part) as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise RocketMQError(f"{path} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def _say_ranges(ranges: list[QueueRange]) -> None:
    for range_ in ranges:
        say(f"{queue_name(range_.queue)}: offsets {range_.begin} to {range_.end}, exclusive")


def _say_sent(sent: Counter[str], topic: str, *, dry_run: bool) -> None:
    """Print how much was sent, also after an interruption."""
    what = "would be sent" if dry_run else "sent"
    for to_topic, count in sorted(sent.items()):
        say(f"{number_of(count, 'message')} of {topic} {what} to {to_topic}")
