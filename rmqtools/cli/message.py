"""``rmqtools message``: finds single messages, and the groups that have consumed them.

``rmqtools message story`` is in :mod:`rmqtools.cli.message_story`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from rmqtools import Admin, ClientConfig, MessageExt
from rmqtools.cli.connection import Json, NameServer, Settings, broker_clock, client_config, partial_admin
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.message_copies import MessageCopies, MessageCopy
from rmqtools.cli.message_story import story
from rmqtools.cli.moments import moment_ms
from rmqtools.cli.output_messages import message_row
from rmqtools.cli.printing import Column, print_json, print_table, say, time_text, warn
from rmqtools.cli.topic import known_route
from rmqtools.errors import BodyTooLargeError, ConfigError, CorruptBodyError
from rmqtools.model.copy_message import own_properties
from rmqtools.model.queue import queue_name

_SHOWN_BYTES = 1000  # of a body; --json has all of it
_FOREVER_MS = 2**63 - 1
_MOST = 64  # messages that a broker looks up by a key at a time

Found = tuple[MessageExt, MessageCopy | None]
"""A message, and why it is not in its topic yet."""

app = typer.Typer(no_args_is_help=True, help="Single messages: find them, and the groups that consumed them.")


app.command()(story)


@app.command()
def get(
    topic: Annotated[
        str | None, typer.Argument(help="The topic; not needed for --id.", show_default=False)
    ] = None,
    name_server: NameServer = "",
    id_: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="An id as clients print it: msgId (give the topic too) or offsetMsgId."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", metavar="KEY", help="One of its keys.")] = None,
    unique_key: Annotated[
        str | None, typer.Option(metavar="ID", help="The id that the producing client gave it (msg_id).")
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Stored at or after: a time, or -2h.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Stored at or before.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many messages.")] = 32,
    track: Annotated[bool, typer.Option("--track/--no-track", help="Show its state in each group.")] = True,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a message, and for each group that reads its topic whether it has consumed it.

    Shows the delivery time of a delayed message, and the next retry or dead letter of one that failed in a
    group, although the group's offset counts it as consumed. Exit code 1: no such message, or a body that
    cannot be read; 3: a broker that may have it does not answer.
    """
    if sum(given is not None for given in (id_, key, unique_key)) != 1:
        raise ConfigError("give one of --id, --key, --unique-key")
    if topic is None and id_ is None:
        raise ConfigError("give the topic too: brokers look up keys in one topic")
    config = client_config(name_server, settings, ClientConfig)
    with partial_admin(config) as admin:
        copies = MessageCopies(admin, config.namespace)
        times = _times(admin, begin, until)
        found: Sequence[Found]
        if id_ is not None:
            found = _by_id(admin, copies, topic, id_)
        else:
            name = key or unique_key or ""
            found = _by_key(admin, copies, topic or "", name, unique=key is None, most=limit, **times)[:limit]
        rows = [_row(admin, copies, message, copy, track=track) for message, copy in found]
        if as_json:
            print_json(rows)
        else:
            for (message, _), row in zip(found, rows, strict=True):
                _print(message, row)
        if not rows:
            given = {"id": id_, "key": key, "unique key": unique_key}
            (name,) = [f"{kind} {text!r}" for kind, text in given.items() if text is not None]
            warn(f"error: topic {topic!r} has no message with {name} that a broker still has")
        if not rows or any("body_error" in row for row in rows):
            raise typer.Exit(ExitCode.NO)


def _times(admin: Admin, begin: str | None, until: str | None) -> dict[str, int]:
    """Return the span of store times of --from and --until."""
    now_ms = broker_clock(admin)
    return {
        "begin_ms": 0 if begin is None else moment_ms("--from", begin, now_ms),
        "end_ms": _FOREVER_MS if until is None else moment_ms("--until", until, now_ms),
    }


def _by_key(
    admin: Admin,
    copies: MessageCopies,
    topic: str,
    key: str,
    *,
    unique: bool,
    most: int = _MOST,
    begin_ms: int = 0,
    end_ms: int = _FOREVER_MS,
) -> list[Found]:
    """Find messages of a topic that a broker has stored there, and those that wait for their delivery."""
    known_route(admin, topic)
    look_up = (
        admin.query_messages
        if most <= _MOST
        else partial(admin.query_all_messages, corrupt_body="null")  # as the other one returns them
    )
    stored = look_up(topic, key, unique=unique, begin_ms=begin_ms, end_ms=end_ms)
    delayed = copies.delayed(topic, key, unique=unique)
    in_time = [each for each in delayed if begin_ms <= each[0].store_timestamp_ms <= end_ms]
    return [*((message, None) for message in stored), *in_time]


def _by_id(admin: Admin, copies: MessageCopies, topic: str | None, text: str) -> list[Found]:
    """Find the message with an id as clients print it.

    Java's clients print ``msgId=`` (unique key) and ``offsetMsgId=`` (address and place); both can have 32
    digits. So an id is first looked for as a unique key, if the topic is given.
    """
    name = text.strip().strip("\"',[]").rpartition("=")[2].upper()
    if topic is not None and (found := _by_key(admin, copies, topic, name, unique=True)):
        return found
    if not _is_offset_msg_id(name):
        if topic is None:
            raise ConfigError(f"--id {text!r} is a client's message id: give the topic too")
        return []
    message = admin.view_message(name)
    target = copies.goes_to(message)
    if target is None:
        return [(message, None)]
    return _by_key(admin, copies, target, message.msg_id, unique=True) or [(message, None)]


def _is_offset_msg_id(name: str) -> bool:
    """Tell by the port, which has 4 bytes before the 8 of the place: a unique key has other things there."""
    return len(name) in (32, 56) and name[-24:-20] == "0000" and name.isalnum()


def _row(
    admin: Admin, copies: MessageCopies, message: MessageExt, copy: MessageCopy | None, *, track: bool
) -> dict[str, Any]:
    row = _stored_row(message.with_topic(copies.goes_to(message) or message.topic)) | {"state": copy}
    if not track:
        return row
    tracks = [] if copy else admin.fetch_message_track(message)
    failed = copies.failed(message, [each.consumer_group for each in tracks])
    return row | {"track": tracks, "failed": failed}


def _stored_row(message: MessageExt) -> dict[str, Any]:
    """Return the object of a message. Where its body cannot be read, ``body`` is None and has a reason."""
    try:
        return message_row(message)
    except CorruptBodyError as error:
        why = error.why
        if isinstance(error, BodyTooLargeError):
            why += "; if you trust its sender, give a larger --set max_decompressed_bytes=..."
        return message_row(message.with_values(body=b"")) | {"body": None, "body_error": why}


def _print(message: MessageExt, row: dict[str, Any]) -> None:
    lines = {
        "topic": row["topic"],
        **({"state": row["state"].text} if row["state"] else {}),
        "queue": f"{queue_name(message)}, offset {message.queue_offset}",
        "message id": message.msg_id,
        "offset id": message.offset_msg_id,
        "tags": message.tags or "-",
        "keys": message.keys or "-",
        "properties": ", ".join(f"{k}={v}" for k, v in own_properties(message.properties).items()) or "-",
        "born": f"{time_text(message.born_timestamp_ms) or '-'}, {message.born_host}",
        "stored": f"{time_text(message.store_timestamp_ms) or '-'}, {message.store_host}",
        "retries": str(message.reconsume_times),
        "body": _body_text(message, row),
    }
    for name, value in lines.items():
        say(f"{name + ':':<12}{value}")
    if "track" in row:
        columns = [Column("group"), Column("track", style=lambda value: _colour(str(value)))]
        columns += [Column("group offset"), Column("members", 1), Column("note", style=lambda _: "yellow")]
        tracks = [
            (
                t.consumer_group,
                t.track_type.value,
                t.consumer_offset,
                "yes" if t.is_online else "none",
                t.error
                or (row["failed"][t.consumer_group].text if t.consumer_group in row["failed"] else ""),
            )
            for t in row["track"]
        ]
        if tracks:
            print_table(columns, tracks)
        elif row["state"] is None:
            say("no group reads this topic")
    say("")


def _body_text(message: MessageExt, row: dict[str, Any]) -> str:
    if "body_error" in row:
        return f"cannot be read: {row['body_error']}"
    kind = "body" if "body" in row else "body_base64"
    text = row[kind]
    cut = f" ... (--json has all {len(message.body)} bytes)" if len(text) > _SHOWN_BYTES else ""
    return f"{text[:_SHOWN_BYTES]}{cut}{' (base64)' if kind == 'body_base64' else ''}"


def _colour(track: str) -> str:
    return {"CONSUMED": "green", "NOT_CONSUME_YET": "yellow", "UNKNOWN": "bold red"}.get(track, "")
