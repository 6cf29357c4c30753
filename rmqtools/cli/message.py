"""``rmqtools message``: finds single messages, and the groups that have consumed them."""

from typing import Annotated, Any

import typer

from rmqtools import Admin, ClientConfig, MessageExt
from rmqtools.cli.connection import Json, NameServer, Settings, client_config
from rmqtools.cli.moments import moment_ms
from rmqtools.cli.output_messages import message_row, user_properties
from rmqtools.cli.printing import Column, print_json, print_table, say, time_text, warn
from rmqtools.cli.topic import known_route
from rmqtools.errors import ConfigError

_NOT_FOUND = 1  # exit code
_SHOWN_BYTES = 1000  # of a body; --json has all of it
_FOREVER_MS = 2**63 - 1

app = typer.Typer(no_args_is_help=True, help="Single messages: find them, and the groups that consumed them.")


@app.callback()
def _root() -> None:
    """Make typer expect a group even while there is only one command."""


@app.command()
def get(
    topic: Annotated[
        str | None, typer.Argument(help="The topic; not needed for --id.", show_default=False)
    ] = None,
    name_server: NameServer = "",
    id_: Annotated[
        str | None, typer.Option("--id", help="Offset message id: where a broker stored it (offset_msg_id).")
    ] = None,
    key: Annotated[str | None, typer.Option(help="One of its keys.")] = None,
    unique_key: Annotated[
        str | None, typer.Option(help="The id that the producing client gave it (msg_id).")
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Stored at or after: a time, or -2h.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Stored at or before.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many messages.")] = 32,
    track: Annotated[bool, typer.Option("--track/--no-track", help="Which groups have consumed it.")] = True,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a message, and for each group that reads its topic whether it has consumed it.

    By the group offset, a message that failed counts as consumed, because its group has it in its retry
    topic. Exit code 1: no such message.
    """
    if sum(given is not None for given in (id_, key, unique_key)) != 1:
        raise ConfigError("give one of --id, --key, --unique-key")
    if topic is None and id_ is None:
        raise ConfigError("give the topic too: brokers look up keys in one topic")
    times = {
        "begin_ms": 0 if begin is None else moment_ms("--from", begin),
        "end_ms": _FOREVER_MS if until is None else moment_ms("--until", until),
    }
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        if id_ is not None:
            messages = [admin.view_message(id_)]
        else:
            known_route(admin, topic or "")
            messages = admin.query_messages(
                topic or "", key or unique_key or "", unique=key is None, max_num=limit, **times
            )
        rows = [_row(admin, message, track=track) for message in messages]
    if as_json:
        print_json(rows)
    else:
        for message, row in zip(messages, rows, strict=True):
            _print(message, row)
    if not rows:
        name = f"key {key!r}" if key is not None else f"unique key {unique_key!r}"
        warn(f"error: topic {topic!r} has no message with {name} that a broker still has")
        raise typer.Exit(_NOT_FOUND)


def _row(admin: Admin, message: MessageExt, *, track: bool) -> dict[str, Any]:
    row = message_row(message)
    return row | {"track": admin.fetch_message_track(message)} if track else row


def _print(message: MessageExt, row: dict[str, Any]) -> None:
    lines = {
        "topic": message.topic,
        "queue": f"{message.broker_name}:{message.queue_id}, offset {message.queue_offset}",
        "message id": message.msg_id,
        "offset id": message.offset_msg_id,
        "tags": message.tags or "-",
        "keys": message.keys or "-",
        "properties": ", ".join(f"{k}={v}" for k, v in user_properties(message).items()) or "-",
        "born": f"{time_text(message.born_timestamp_ms) or '-'}, {message.born_host}",
        "stored": f"{time_text(message.store_timestamp_ms) or '-'}, {message.store_host}",
        "retries": str(message.reconsume_times),
        "body": _body_text(row, len(message.body)),
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
                t.error,
            )
            for t in row["track"]
        ]
        if tracks:
            print_table(columns, [(*cells[:4], cells[4] or "") for cells in tracks])
        else:
            say("no group reads this topic")
    say("")


def _body_text(row: dict[str, Any], length: int) -> str:
    kind = "body" if "body" in row else "body_base64"
    text = row[kind]
    cut = f" ... (--json has all {length} bytes)" if len(text) > _SHOWN_BYTES else ""
    return f"{text[:_SHOWN_BYTES]}{cut}{' (base64)' if kind == 'body_base64' else ''}"


def _colour(track: str) -> str:
    return {"CONSUMED": "green", "NOT_CONSUME_YET": "yellow", "UNKNOWN": "bold red"}.get(track, "")
